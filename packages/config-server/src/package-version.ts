import { readFileSync } from 'node:fs';

/** The version of this package, from its package.json, which is one folder above both `src` and `dist`. */
export function packageVersion(): string {
  return (JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }).version;
}
