// Emits JavaScript and declarations for publishing: packages/<name>/src → packages/<name>/dist, tests left out.
// With --no-check the types are not checked, for callers that have: the output is the same.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { buildAdminSite } from './admin-site.ts';

const root = join(import.meta.dirname, '..');
const scratch = join(root, 'node_modules', '.cache', 'build');
mkdirSync(scratch, { recursive: true });

interface Manifest {
  readonly name: string;
  readonly private?: boolean;
  readonly exports?: Record<string, unknown>;
}

function compile(name: string, src: string, dist: string): void {
  const config = join(scratch, `${name.replaceAll(/\W/g, '-')}.json`);
  const compilerOptions = {
    noEmit: false,
    declaration: true,
    // Editors go to the source, which is in the package, instead of the declaration.
    declarationMap: true,
    sourceMap: true,
    rootDir: src,
    outDir: dist,
    typeRoots: [join(root, 'node_modules/@types')],
  };
  writeFileSync(
    config,
    JSON.stringify({ extends: join(root, 'tsconfig.base.json'), compilerOptions, include: [src], exclude: [`${src}/**/*.test.ts`] }),
  );
  const args = [join(root, 'node_modules/typescript/bin/tsc'), '-p', config, ...(process.argv.includes('--no-check') ? ['--noCheck'] : [])];
  const tsc = spawnSync(process.execPath, args, { stdio: 'inherit' });
  if (tsc.status !== 0) process.exit(1);
}

/** Files that are not TypeScript (pages, stylesheets, SQL) ship as they are. */
function copyAssets(src: string, dist: string): void {
  for (const entry of globSync('**/*', { cwd: src, withFileTypes: true })) {
    if (!entry.isFile() || /\.(ts|tsx|md)$/.test(entry.name)) continue;
    const path = join(entry.parentPath, entry.name);
    const target = join(dist, relative(src, path));
    mkdirSync(dirname(target), { recursive: true });
    cpSync(path, target);
  }
}

await buildAdminSite((line) => console.log(line));

for (const file of globSync('packages/*/package.json', { cwd: root }).sort()) {
  const folder = dirname(join(root, file));
  const manifest = JSON.parse(readFileSync(join(root, file), 'utf8')) as Manifest;
  if (manifest.private === true) continue;
  const started = performance.now();
  const [src, dist] = [join(folder, 'src'), join(folder, 'dist')];
  rmSync(dist, { recursive: true, force: true });
  compile(manifest.name, src, dist);
  copyAssets(src, dist);
  const missing = Object.values(manifest.exports ?? {})
    .flatMap((entry) => (typeof entry === 'object' && entry !== null && 'default' in entry ? [String(entry.default)] : []))
    .filter((target) => !existsSync(join(folder, target)));
  if (missing.length > 0) {
    console.error(`${manifest.name}: package.json exports files the build did not make: ${missing.join(', ')}`);
    process.exit(1);
  }
  console.log(`built ${manifest.name} in ${Math.round(performance.now() - started)} ms`);
}
