import { mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Rows are for the user of the process alone: SQLite itself would make the file as readable as the umask allows, and its log takes the mode of the
 * file. What exists keeps its mode: somebody may share it on purpose.
 */
export async function createPrivateFile(file: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const created = await open(file, 'wx', 0o600).catch(() => undefined); // it exists, or SQLite says what is wrong
  await created?.close();
}
