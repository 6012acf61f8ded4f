// Builds the admin site's browser application into kit's sources, where `kit/admin` reads it; not kept in git.
import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const root = join(import.meta.dirname, '..');
const site = join(root, 'packages/kit/src/admin/site');
const cache = join(root, 'node_modules/.cache/admin-site');
const PARTS = 'parts.json';

/** What the built site depends on; its own build included. */
const SOURCES = [
  'packages/admin-ui/{src,public}/**/*',
  'packages/admin-ui/{index.html,package.json,tsconfig.json,vite.config.ts}',
  'packages/kit/src/admin/wire/wire.ts',
  'scripts/admin-site.ts',
];

/** Smaller answers do not get smaller on the wire. */
const COMPRESS_FROM_BYTES = 1024;

/** Builds the site when its sources have changed since it was built. `say` is called when there is work to do. */
export async function buildAdminSite(say: (line: string) => void): Promise<void> {
  const state = sourceHash();
  const stamp = join(cache, 'built-from');
  if (existsSync(join(site, 'index.html')) && existsSync(join(cache, PARTS)) && existsSync(stamp) && readFileSync(stamp, 'utf8') === state)
    return;
  const began = performance.now();
  say('building the admin site …');
  // Built aside and moved: a server that starts meanwhile finds the old site or the new one.
  mkdirSync(cache, { recursive: true });
  const scratch = mkdtempSync(join(cache, 'build-'));
  const made = join(scratch, 'site');
  const parts = await bundle(made);
  compress(made);
  if (existsSync(site)) renameSync(site, join(scratch, 'old'));
  renameSync(made, site);
  rmSync(scratch, { recursive: true, force: true });
  writeFileSync(join(cache, PARTS), JSON.stringify(parts, null, 2));
  writeFileSync(stamp, state);
  say(`built the admin site in ${((performance.now() - began) / 1000).toFixed(1)} s`);
}

/** What the scripts of the built site are made of: for each, the bytes of each part before minifying. */
export function builtParts(): ScriptParts {
  return JSON.parse(readFileSync(join(cache, PARTS), 'utf8')) as ScriptParts;
}

/** A part is a library, a component of the component kit, or a folder of the site. */
type ScriptParts = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** Always as users get it: under a test runner's NODE_ENV the libraries would be bundled with their development halves. */
async function bundle(outDir: string): Promise<ScriptParts> {
  const { build } = await import('vite');
  const before = process.env['NODE_ENV'];
  process.env['NODE_ENV'] = 'production';
  try {
    const configFile = join(root, 'packages/admin-ui/vite.config.ts');
    const made = await build({ configFile, mode: 'production', logLevel: 'warn', build: { outDir, emptyOutDir: true } });
    const outputs = 'on' in made ? [] : [made].flat().flatMap(({ output }) => output);
    return Object.fromEntries(outputs.flatMap((file) => (file.type === 'chunk' ? [[file.fileName, partsOf(file.modules)]] : [])));
  } finally {
    if (before === undefined) delete process.env['NODE_ENV'];
    else process.env['NODE_ENV'] = before;
  }
}

function partsOf(modules: Readonly<Record<string, { readonly renderedLength: number }>>): Record<string, number> {
  const parts: Record<string, number> = {};
  for (const [path, { renderedLength }] of Object.entries(modules)) {
    const part =
      /@mantine\/core\/esm\/components\/[^/]+/.exec(path)?.[0].replace('/esm/components', '') ??
      /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules)/.exec(path)?.[1] ??
      /admin-ui\/(src\/[^/]+)/.exec(path)?.[1] ??
      'other';
    parts[part] = (parts[part] ?? 0) + renderedLength;
  }
  return parts;
}

function sourceHash(): string {
  const hash = createHash('sha256');
  const files = globSync(SOURCES, { cwd: root }).filter((path) => statSync(join(root, path)).isFile());
  for (const path of files.sort())
    hash
      .update(path)
      .update('\0')
      .update(readFileSync(join(root, path)))
      .update('\0');
  return hash.digest('hex');
}

/** Compressed once, here, as well as it goes; the page itself is filled in per answer and stays as it is. */
function compress(folder: string): void {
  for (const name of globSync('**/*.{js,css,svg}', { cwd: folder })) {
    const bytes = readFileSync(join(folder, name));
    if (bytes.length < COMPRESS_FROM_BYTES) continue;
    writeFileSync(join(folder, `${name}.gz`), gzipSync(bytes, { level: 9 }));
    writeFileSync(join(folder, `${name}.br`), brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }));
  }
}
