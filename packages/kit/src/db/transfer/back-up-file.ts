import { link, mkdir, open, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Database } from '../engine/db.ts';
import type { Handle } from '../engine/handle.ts';

/**
 * Copies a SQLite file that is in use, by SQLite's online backup: the copy is the state of one moment, and writers go on. The copy gets its name when
 * it is complete and on disk, so that a file with that name is never a part of one; a file that exists stays as it is.
 */
export async function backUpFile(database: Database, path: string): Promise<void> {
  const partial = `${path}.partial`;
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await rm(partial, { force: true });
  try {
    const made = await (database as unknown as Handle).context.engine.backUp(() => partial);
    if (made === undefined) throw new Error('only a SQLite file can be copied');
    await sync(partial);
    await link(partial, path);
    await sync(dirname(path));
  } finally {
    await rm(partial, { force: true });
  }
}

async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
