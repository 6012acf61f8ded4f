import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runScript } from '../clients/run-script.ts';

const here = import.meta.dirname;
const FILES = ['package.json', 'package-lock.json', '.npmrc'];

/** Where the judges are. They are installed once per lock file: together they are larger than everything else a clone needs. */
export async function installJudges(from = here): Promise<string> {
  const lock = readFileSync(join(from, 'package-lock.json'));
  const folder = join(here, '../../node_modules/.cache/openapi-judges', createHash('sha256').update(lock).digest('hex').slice(0, 12));
  const done = join(folder, 'installed');
  if (existsSync(done)) return folder;
  mkdirSync(folder, { recursive: true });
  for (const file of FILES) copyFileSync(join(from, file), join(folder, file));
  const { code, stderr } = await runScript('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], folder, { NODE_OPTIONS: '' });
  if (code !== 0) throw new Error(`The linters and generators could not be installed: ${stderr}`);
  writeFileSync(done, '');
  return folder;
}
