import { constants, readFileSync, stat, statSync, type Stats } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

/** A larger file was listed by mistake, and reading it would delay all requests. */
const FILE_BYTES_MAX = 16 * 1024 * 1024;

/** Without O_NONBLOCK a named pipe that replaces a file between `stat` and `open` would hang the reader. */
const FLAG = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/** Why an existing file is not read. Its code is shown in messages like one of the operating system. */
class UnreadableFile extends Error {
  readonly code: string;

  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

/** Reading a pipe without a writer, or a device, never ends. */
function checkRegular(stats: Stats): Stats {
  if (stats.isDirectory()) throw new UnreadableFile('EISDIR');
  if (!stats.isFile()) throw new UnreadableFile('not a regular file');
  if (stats.size > FILE_BYTES_MAX) throw new UnreadableFile(`larger than ${FILE_BYTES_MAX / 1024 / 1024} MiB`);
  return stats;
}

const statAsynchronously = promisify(stat);

/** How files are read. `stat` refuses what must not be read; `read` is for files that passed it. */
export interface FileAccess {
  stat(path: string): Stats | Promise<Stats>;
  read(path: string): Buffer | Promise<Buffer>;
}

/** While requests are served: a slow disk must not delay them. */
export const asynchronousFiles: FileAccess = {
  stat: async (path) => checkRegular(await statAsynchronously(path)),
  read: (path) => readFile(path, { flag: FLAG }),
};

/** Before the server listens: no request can be delayed, and 1,000 sections load in a third of the time. */
export const synchronousFiles: FileAccess = {
  stat: (path) => checkRegular(statSync(path)),
  read: (path) => readFileSync(path, { flag: FLAG }),
};

/** Reads server.toml, or a token or certificate that it names. */
export function readRegularFile(path: string): Buffer {
  checkRegular(statSync(path));
  return readFileSync(path, { flag: FLAG });
}
