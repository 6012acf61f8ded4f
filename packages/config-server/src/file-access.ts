import { constants, readFileSync, stat, statSync, type Stats } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

/** No configuration, certificate or token is larger; a file that is was listed by mistake and would hold all requests up. */
const FILE_BYTES_MAX = 16 * 1024 * 1024;

/** Without O_NONBLOCK a named pipe put in a file's place between the look and the reading would hang the reader. */
const FLAG = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/** Why a file is not read although it exists. The code takes the place of the operating system's in messages. */
class UnreadableFile extends Error {
  readonly code: string;

  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

/** Waiting for a pipe's writer takes forever, and so does reading a device. */
function checkRegular(stats: Stats): Stats {
  if (stats.isDirectory()) throw new UnreadableFile('EISDIR');
  if (!stats.isFile()) throw new UnreadableFile('not a regular file');
  if (stats.size > FILE_BYTES_MAX) throw new UnreadableFile(`larger than ${FILE_BYTES_MAX / 1024 / 1024} MiB`);
  return stats;
}

const statInBackground = promisify(stat);

/** How files are read. `stat` refuses what must not be read; `read` is for what `stat` let pass. */
export interface FileAccess {
  stat(path: string): Stats | Promise<Stats>;
  read(path: string): Buffer | Promise<Buffer>;
}

/** While requests are served, a slow disk must not hold them up. */
export const inBackground: FileAccess = {
  stat: async (path) => checkRegular(await statInBackground(path)),
  read: (path) => readFile(path, { flag: FLAG }),
};

/** Before anything is served there is nobody to hold up, and 1,000 sections load in a third of the time. */
export const atOnce: FileAccess = {
  stat: (path) => checkRegular(statSync(path)),
  read: (path) => readFileSync(path, { flag: FLAG }),
};

/** A file of server.toml's own: itself, a token, a certificate. */
export function readRegularFile(path: string): Buffer {
  checkRegular(statSync(path));
  return readFileSync(path, { flag: FLAG });
}
