import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Pool, type PoolClient } from 'pg';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { createPostgresDatabase, type DatabasePlace } from '../packages/kit/src/testing/test-database.ts';
import { codeBlocks, root } from './docs/pages.ts';

// The receiver's table and function of the guide, run as they are printed there.
const page = codeBlocks('docs/guide/webhooks-receiving.md');
const printed = (language: string, mark: string): string =>
  page.find((block) => block.language === language && block.text.includes(mark))?.text ?? '';
const folder = join(root, 'node_modules', '.cache', 'deduplicate-guide');
let place: DatabasePlace;
let pool: Pool;
let once: (pool: Pool, id: string, work: (client: PoolClient) => Promise<void>) => Promise<void>;

beforeAll(async () => {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'once.ts'), printed('ts', 'PoolClient'));
  ({ once } = (await import(join(folder, 'once.ts'))) as { once: typeof once });
  place = await createPostgresDatabase(inject('postgresUrl'));
  pool = new Pool({ connectionString: place.url });
  await pool.query(printed('sql', 'received_webhooks'));
  await pool.query('create table work_done (n integer)');
});
afterAll(async () => {
  await pool.end();
  await place.remove();
  rmSync(folder, { recursive: true, force: true });
});

test('ten copies of a message that arrive together are worked on once, and again when the work failed', async () => {
  const work = async (client: PoolClient): Promise<void> => void (await client.query('insert into work_done values (1)'));
  const done = async () => Number((await pool.query<{ n: string }>('select count(*) as n from work_done')).rows[0]?.n);
  await Promise.all(Array.from({ length: 10 }, () => once(pool, 'msg_1', work)));
  expect(await done()).toBe(1);
  const failing = once(pool, 'msg_2', async (client) => {
    await work(client);
    throw new Error('work failed');
  });
  await expect(failing).rejects.toThrow('work failed');
  expect(await done()).toBe(1);
  await once(pool, 'msg_2', work);
  expect(await done()).toBe(2);
});
