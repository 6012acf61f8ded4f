import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { NotEditable } from '../files/place.ts';

/** Lets a person edit a text in a file that only they can read, in memory where the system has such a folder. It is gone afterwards. */
export function editInEditor(name: string, text: string, editor: string, runtimeFolder: string | undefined): string {
  const folder = mkdtempSync(join(privateFolder(runtimeFolder), 'config-secrets-'));
  const path = join(folder, basename(name));
  const removeAll = (): void => rmSync(folder, { recursive: true, force: true });
  const onSignal = (): void => {
    removeAll();
    process.exit(1);
  };
  // The editor gets an interrupt of the terminal as well, and decides.
  const onInterrupt = (): void => undefined;
  process.on('SIGINT', onInterrupt);
  for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.once(signal, onSignal);
  try {
    writeFileSync(path, text, { mode: 0o600 });
    // A shell, because EDITOR may have arguments, such as `code --wait`.
    const { status } = spawnSync('sh', ['-c', `${editor} "$1"`, 'config-secrets', path], { stdio: 'inherit' });
    if (status !== 0) throw new NotEditable('the editor failed; nothing was written');
    return editedText(readFileSync(path));
  } finally {
    removeAll();
    process.off('SIGINT', onInterrupt);
  }
}

/** Without the byte order mark that some editors add. Text in another encoding must not be saved as question marks. */
function editedText(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new NotEditable('the editor saved text that is not valid UTF-8; nothing was written');
  }
}

function privateFolder(runtimeFolder: string | undefined): string {
  for (const folder of [runtimeFolder, '/dev/shm']) {
    if (folder !== undefined && isFolder(folder)) return folder;
  }
  return tmpdir();
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
