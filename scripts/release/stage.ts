import { cpSync, existsSync, globSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { extname, join, relative, sep } from 'node:path';
import { WORKSPACE_NAMES, type PublicNames } from './public-names.ts';
import { releasedPage, renaming, type Rename } from './renamed.ts';

const root = join(import.meta.dirname, '../..');

/** Of these the text is renamed; others (images, fonts) are copied byte by byte. */
const TEXTS = new Set(['.js', '.mjs', '.ts', '.map', '.md', '.json', '.yaml', '.yml', '.html', '.css', '.sql', '']);

export interface StagedPackage {
  readonly name: string;
  readonly version: string;
  readonly folder: string;
}

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly files?: readonly string[];
  readonly exports?: Readonly<Record<string, Readonly<Record<string, string>> | string>>;
  readonly [member: string]: unknown;
}

/**
 * Puts together what npm publishes, each package in its folder below `target`, under its public name: no tests, no development
 * dependencies, no `source` condition that only the workspace resolves. The sources are in it for editors and debuggers, which follow the maps
 * of `dist` to them. The packages must have been built.
 */
export function stagePackages(names: PublicNames, target: string): StagedPackage[] {
  rmSync(target, { recursive: true, force: true });
  const kit = readManifest('kit');
  const rename = renaming(
    names,
    Object.keys(kit.exports ?? {}).flatMap((subpath) => (subpath.startsWith('./') ? [subpath.slice(2)] : [])),
  );
  const isPublic = names !== WORKSPACE_NAMES;
  const stage = (folder: string, name: string, parts: Readonly<Record<string, string>>, extra: object = {}): StagedPackage => {
    const place = join(target, folder);
    for (const [to, from] of Object.entries({ 'README.md': `packages/${folder}/README.md`, LICENSE: 'LICENSE', ...parts }))
      copy(join(root, from), join(place, to), isPublic ? (text) => rename(releasedPage(text)) : (text) => text);
    const manifest = readManifest(folder);
    writeFileSync(join(place, 'package.json'), `${JSON.stringify({ ...published(manifest), name, ...extra }, null, 2)}\n`);
    return { name, version: manifest.version, folder: place };
  };
  const staged = [stage('config-server', names.configServer, filesOf('config-server')), stage('kit', names.toolkit, filesOf('kit'))];
  // A project that `npm create` makes installs the toolkit from the registry: that takes a name which is ours.
  if (isPublic)
    staged.push(
      stage(
        'create-kit',
        names.create,
        { bin: 'packages/create-kit/bin', dist: 'packages/kit/dist/cli/new', templates: 'packages/kit/templates' },
        { version: kit.version, toolkit: names.toolkit, bin: { [names.create.replace(/^.*\//, '')]: 'bin/create-kit.js' } },
      ),
    );
  if (isPublic) stagePages(rename, join(target, 'pages'));
  return staged;
}

/** The README and the documentation, with install lines that work once the packages are published. */
function stagePages(rename: Rename, target: string): void {
  for (const page of [
    'README.md',
    'CHANGELOG.md',
    'SECURITY.md',
    ...globSync('docs/**/*.md', { cwd: root, exclude: ['**/node_modules/**'] }),
  ])
    copy(join(root, page), join(target, page), (text) => rename(releasedPage(text)));
}

/** The `files` of the package's manifest: where each is, by its place in the staged package. */
function filesOf(folder: string): Record<string, string> {
  return Object.fromEntries((readManifest(folder).files ?? []).map((name) => [name, `packages/${folder}/${name}`]));
}

function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(root, 'packages', folder, 'package.json'), 'utf8')) as Manifest;
}

/** Of no use to those who install the package. */
const OF_WORKSPACE = new Set(['scripts', 'devDependencies', 'private', 'source']);

/** The manifest without what only the workspace needs: members, and conditions of its exports. */
function published(manifest: Manifest): object {
  const kept = (members: object): object => Object.fromEntries(Object.entries(members).filter(([name]) => !OF_WORKSPACE.has(name)));
  const entries = Object.entries(manifest.exports ?? {}).map(([subpath, entry]) => [
    subpath,
    typeof entry === 'string' ? entry : kept(entry),
  ]);
  return { ...kept(manifest), ...(manifest.exports === undefined ? {} : { exports: Object.fromEntries(entries) as object }) };
}

/** Of a folder of sources: those that were compiled. Assets are in `dist`. */
function isPublished(path: string): boolean {
  const [packages, , folder] = relative(root, path).split(sep);
  if (packages !== 'packages' || folder !== 'src' || statSync(path).isDirectory()) return true;
  return extname(path) === '.ts' && !path.endsWith('.test.ts');
}

function copy(from: string, to: string, change: Rename): void {
  if (!existsSync(from)) throw new Error(`${from} does not exist. Build the packages first: npm run build`);
  cpSync(from, to, { recursive: true, filter: isPublished });
  const files = globSync('**/*', { cwd: to, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = files.length > 0 ? files.map((entry) => join(entry.parentPath, entry.name)) : [to];
  for (const path of paths) {
    if (!TEXTS.has(extname(path))) continue;
    const text = readFileSync(path, 'utf8');
    const changed = change(text);
    if (changed !== text) writeFileSync(path, changed);
  }
}
