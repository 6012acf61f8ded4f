import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Drive, startDrive } from '../../../test/grants/drive.ts';
import { type Database, openDatabase } from '../../db/index.ts';
import { engineOf } from '../../db/engine/handle.ts';
import type { SqliteEngine } from '../../db/engine/sqlite/engine.ts';
import { grant, revoke } from './grant/grant.ts';

// On a file of SQLite, reads that may be long run in processes of their own: the rows of a caller are those of the caller's grants there, too.

let folder: string;
let db: Database;
let drive: Drive;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'kit-granted-reads-'));
  db = await openDatabase(`sqlite:${join(folder, 'app.db')}`);
  drive = await startDrive({ database: db });
});
afterAll(async () => {
  await drive.close();
  await db.close();
  rmSync(folder, { recursive: true, force: true });
});

const READS = {
  search: 'docs?search=plan',
  contains: 'docs?title__contains=plan',
  order: 'docs?ordering=-size',
  relation: 'docs?folder__name=shared',
  statistics: 'docs/stats?group_by=title',
  export: 'docs/export?format=jsonl',
} as const;

async function titlesOf(person: string): Promise<Record<string, readonly string[]>> {
  const found: Record<string, readonly string[]> = {};
  for (const [name, path] of Object.entries(READS)) {
    const { status, body, text } = await drive.ask(person, 'GET', path);
    expect([name, status]).toEqual([name, 200]);
    const rows: { readonly title: string }[] =
      name === 'export'
        ? text
            .split('\n')
            .filter((line) => line !== '')
            .map((line) => JSON.parse(line))
        : (body.items ?? body);
    found[name] = rows.map(({ title }) => title).toSorted();
  }
  return found;
}
const pids = () => (engineOf(db) as SqliteEngine).readerPids;

test('reads in other processes have the rows that the caller was granted, from one request to the next, also after their processes were killed', async () => {
  const shared = await drive.folder('shared');
  await drive.doc('own plan', { owner: 'bob' });
  const direct = await drive.doc('direct plan');
  await drive.doc('plan in folder', { folder: shared });
  await drive.doc('foreign plan');
  await drive.doc('southern plan', { org: 'south', owner: 'sue' });
  const subject = `user:${drive.user('bob').id}`;
  const everywhere = (titles: readonly string[], folders: readonly string[]) => ({
    search: titles,
    contains: titles,
    order: titles,
    relation: folders,
    statistics: titles,
    export: titles,
  });
  const all = ['direct plan', 'own plan', 'plan in folder'];

  expect(await titlesOf('bob')).toEqual(everywhere(['own plan'], []));
  expect(pids().length).toBeGreaterThan(0);
  await grant(db, { object: { type: 'docs', id: direct }, subject, set: 'viewer' });
  await grant(db, {
    object: { type: 'folders', id: shared },
    subject,
    set: 'viewer',
    expiresAt: new Date(drive.clock.now().getTime() + 60_000),
  });
  expect(await titlesOf('bob')).toEqual(everywhere(all, ['plan in folder']));
  expect(await titlesOf('eve')).toEqual(everywhere([], []));

  for (const pid of pids()) process.kill(pid, 'SIGKILL');
  expect(await titlesOf('bob')).toEqual(everywhere(all, ['plan in folder']));

  await revoke(db, { object: { type: 'docs', id: direct }, subject });
  expect(await titlesOf('bob')).toEqual(everywhere(['own plan', 'plan in folder'], ['plan in folder']));
  // The time of a reader is that of the app.
  drive.clock.advance(60_001);
  expect(await titlesOf('bob')).toEqual(everywhere(['own plan'], []));
});
