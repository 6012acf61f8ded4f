// What does a call of the generated TypeScript client cost next to bare `fetch` + `JSON.parse`? The same loopback server, a page of 20 orders;
// the client also fills in the URL, the credentials, a deadline and the version of the response.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineBenchmark } from './harness/benchmark.ts';
import { contest, ratioOf } from './harness/contest.ts';
import { ratePerSecond } from './harness/loop.ts';

const root = join(import.meta.dirname, '..');
const ROWS = 20;

interface Client {
  readonly orders: { list(args: object): Promise<{ readonly items: readonly unknown[] }> };
}

async function generatedClient(folder: string): Promise<(options: object) => Client> {
  const file = join(folder, 'api.ts');
  const { status, stderr } = spawnSync(
    process.execPath,
    ['--conditions=source', join(root, 'packages/kit/bin/kit.js'), 'client', 'typescript', '--out', file],
    { cwd: join(root, 'examples/orders'), encoding: 'utf8', env: { ...process.env, DATA_FOLDER: join(folder, 'data') } },
  );
  if (status !== 0) throw new Error(stderr);
  return ((await import(file)) as { createClient: (options: object) => Client }).createClient;
}

function pageText(): string {
  const row = (index: number) => ({ id: `019b0c1e-8f00-7000-8000-${String(index).padStart(12, '0')}`, item: 'chair', quantity: 2, total: '19.98', currency: 'EUR', status: 'open', invoice_id: null, created_at: '2026-01-31T12:00:00.000Z', updated_at: '2026-01-31T12:00:00.000Z', version: 1 }); // prettier-ignore
  return JSON.stringify({ items: Array.from({ length: ROWS }, (_, index) => row(index)), count: ROWS, next: null, previous: null });
}

export default defineBenchmark({
  name: 'client-overhead',
  question: 'What does a call of the generated TypeScript client cost next to bare fetch and JSON.parse?',
  async run(context) {
    const folder = mkdtempSync(join(tmpdir(), 'kit-bench-client-'));
    const text = pageText();
    const server = createServer((_request, response) =>
      response.writeHead(200, { 'content-type': 'application/json', etag: '"1"' }).end(text),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    try {
      const client = (await generatedClient(folder))({ baseUrl, apiKey: 'kit_bench' });
      const bare = async () => {
        const response = await fetch(`${baseUrl}/v1/orders?status=open&limit=${ROWS}`, { headers: { 'x-api-key': 'kit_bench' } });
        if (!response.ok) throw new Error(String(response.status));
        return JSON.parse(await response.text()) as unknown;
      };
      const contender = (name: string, call: () => Promise<unknown>) => ({
        name,
        measure: (seconds: number) => ratePerSecond(call, seconds),
      });
      const result = await contest(context, [
        contender('generated client', () => client.orders.list({ status: 'open', limit: ROWS })),
        contender('bare fetch', bare),
      ]);
      return [{ name: 'client-overhead', value: ratioOf(result, 'generated client', 'bare fetch'), goal: 1 / 1.15 }];
    } finally {
      server.close();
      rmSync(folder, { recursive: true, force: true });
    }
  },
});
