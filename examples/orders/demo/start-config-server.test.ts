import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startConfigServer } from './start-config-server.ts';

test('one value is encrypted in its file, served in plain text, and the same after a second start', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'orders-config-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const served: unknown[] = [];
  for (let start = 1; start <= 2; start++) {
    const server = await startConfigServer(folder);
    const ask = async (path: string): Promise<Record<string, unknown>> =>
      (await (
        await fetch(`${server.url}/orders/development${path}`, { headers: { authorization: `Bearer ${server.token}` } })
      ).json()) as Record<string, unknown>;
    served.push((await ask(''))['carrier_key']);
    const { rows } = (await ask('/explain/carrier_key')) as { rows: object[] };
    expect(rows[0]).toMatchObject({ origin: 'file secrets.toml', value: '***', line: 3, column: 1, via: 'age' });
    await server.stop();
  }
  expect(served[0]).toMatch(/^[0-9a-f]{32}$/);
  expect(served[1]).toBe(served[0]);
  expect(readFileSync(join(folder, 'config', 'secrets.toml'), 'utf8')).not.toContain(String(served[0]));
});
