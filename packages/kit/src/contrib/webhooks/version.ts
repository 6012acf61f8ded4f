import { readFileSync } from 'node:fs';

const manifest = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as { version: string };

/** Of the package, for the user agent. The path is the same from the sources and from the build. */
export const VERSION = manifest.version;
