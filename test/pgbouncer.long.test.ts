import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { root } from './architecture/module-graph.ts';
import { PGBOUNCER } from './provision/pgbouncer.ts';

describe.runIf(PGBOUNCER !== undefined)('PgBouncer in transaction mode', () => {
  test('all database tests of the toolkit pass through it', { timeout: 7_200_000 }, async () => {
    const program = join(root, 'node_modules', 'vitest', 'vitest.mjs');
    const env = { ...process.env, KIT_TEST_PGBOUNCER: '1', KIT_TEST_LONG: '0' };
    const child = spawn(process.execPath, [program, 'run', '--project', 'db', '--reporter', 'dot', 'packages/kit/'], { cwd: root, env });
    let said = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (text: Buffer) => (said = (said + text.toString()).slice(-200_000)));
    const code = await new Promise((done) => child.once('exit', done));
    expect({ code, said }).toMatchObject({ code: 0 });
  });
});
