// npm 10 removes node_modules/.bin/node again when it leaves out the platform packages of other systems, which have a program of
// the same name. Scripts would then run on the system's Node. npm 11 keeps the link, and this does nothing.
import { existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const modules = join(dirname(dirname(fileURLToPath(import.meta.url))), 'node_modules');
const target = join('..', `node-${process.platform}-${process.arch}`, 'bin', 'node');
const link = join(modules, '.bin', 'node');
if (process.platform !== 'win32' && !existsSync(link) && existsSync(join(modules, '.bin', target))) {
  mkdirSync(dirname(link), { recursive: true });
  symlinkSync(target, link);
}
