import { existsSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { CONFIG_NAMES } from '../../app/declare/config-names.ts';
import { CliFailure } from '../terminal/cli-failure.ts';

/** The app's file: the one named by `--config`, else the nearest `kit.config.*` from `cwd` upwards; null when there is none. */
export function findConfig(cwd: string, given?: string): string | null {
  if (given !== undefined) {
    const file = resolve(cwd, given);
    if (!existsSync(file)) throw new CliFailure(`There is no file ${file} (given with --config).`);
    if (statSync(file).isDirectory())
      throw new CliFailure(`${file} (given with --config) is a folder: name the file in it that exports the app.`);
    return file;
  }
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    const found = CONFIG_NAMES.map((name) => join(folder, name)).find((file) => existsSync(file));
    if (found !== undefined) return found;
    if (dirname(folder) === folder) return null;
  }
}

/** Said when a command needs the app and there is none. */
export function missingConfig(cwd: string): string {
  return [
    `No kit.config.ts found in ${resolve(cwd)} or any folder above it.`,
    'Create one whose default export is your app (export default createApp({ … })), or name it with --config <file>.',
  ].join('\n');
}
