// Packs each package as npm would publish it, installs the tarball into an empty project elsewhere and imports every
// entry point on each Node version we promise, taken from npm. Catches what a workspace hides: a missing file, an
// undeclared dependency, an export that points nowhere, syntax an older Node does not know. publint and attw judge the tarballs.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packStaged } from './release/build-and-stage.ts';
import { installLinters, lintTarball } from './release/lint-tarball.ts';
import { WORKSPACE_NAMES } from './release/public-names.ts';
import { stagePackages, type StagedPackage } from './release/stage.ts';
import { startPostgresServer } from '../test/provision/postgres-server.ts';

const root = join(import.meta.dirname, '..');
const platform = `${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`;

/** The Node versions that each package promises; where npm lacks one for this platform, the next of its line runs. */
const NODES: Readonly<Record<string, readonly string[]>> = {
  '@kit/config-server': ['22.18.0', '24.21.0', '26.10.0'],
  kit: ['22.19.0', '24.21.0', '26.10.0'],
};

/** The oldest Node that kit supports, where it supports PostgreSQL only. */
const POSTGRES_ONLY = '22.19.0';

interface Manifest {
  readonly name: string;
  readonly exports: Record<string, unknown>;
  readonly bin?: Record<string, string>;
  readonly peerDependencies?: Record<string, string>;
}

async function run(command: string, args: readonly string[], cwd: string): Promise<string> {
  const env = { ...process.env, NODE_OPTIONS: '', npm_config_loglevel: 'error' };
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} failed:\n${stdout}\n${stderr}`);
  return stdout;
}

const scratch = mkdtempSync(join(tmpdir(), 'kit-packages-'));
interface NodeProgram {
  readonly binary: string;
  readonly version: string;
}

const programs = new Map<string, Promise<NodeProgram>>();

/** The oldest Node of this version or a later one of its line that npm has for this platform, installed once per run. */
function nodeProgram(version: string): Promise<NodeProgram> {
  const known = programs.get(version);
  if (known !== undefined) return known;
  const program = installNode(version);
  programs.set(version, program);
  return program;
}

/** npm does not have every version for every platform: 22.19.0 is missing for linux-arm64 on some registries. */
async function oldestOnNpm(version: string): Promise<string> {
  const next = Number(version.split('.')[0]) + 1;
  const found = await run('npm', ['view', `node-${platform}@>=${version} <${next}`, 'version', '--json'], scratch);
  const versions = found === '' ? [] : [JSON.parse(found) as string | string[]].flat();
  const [oldest] = versions.toSorted((one, other) => one.localeCompare(other, 'en', { numeric: true }));
  if (oldest === undefined) throw new Error(`npm has no Node ${version} or later before ${next} for ${platform}`);
  return oldest;
}

async function installNode(promised: string): Promise<NodeProgram> {
  // The one that the workspace runs on is there already.
  if (promised === process.versions.node) return { binary: process.execPath, version: promised };
  const version = await oldestOnNpm(promised);
  const folder = join(scratch, `node-${promised}`);
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{"private":true}');
  await run('npm', ['install', '--no-save', `node-${platform}@${version}`], folder);
  return { binary: join(folder, 'node_modules', `node-${platform}`, 'bin', 'node'), version };
}

function versionHere(peer: string): string {
  return (JSON.parse(readFileSync(join(root, 'node_modules', peer, 'package.json'), 'utf8')) as { readonly version: string }).version;
}

/** Entry points that need an optional peer. */
const BEHIND_PEERS: Readonly<Record<string, readonly string[]>> = {
  'kit/kysely': ['kysely'],
  'kit/contrib/jwt': ['jose'],
  'kit/contrib/accounts/smtp': ['nodemailer'],
  'kit/contrib/better-auth': ['better-auth'],
  'kit/contrib/mcp': ['@modelcontextprotocol/server'],
  'kit/contrib/webhooks/nats': ['@nats-io/jetstream', '@nats-io/transport-node'],
  'kit/contrib/webhooks/rabbitmq': ['amqplib'],
};

/** An empty project with the packed package installed in it, as a user would have it. */
async function install(name: string, tarball: string): Promise<string> {
  const project = join(scratch, name.replaceAll(/\W/g, '-'));
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), '{"private":true,"type":"module"}');
  await run('npm', ['install', '--ignore-scripts', tarball], project);
  return project;
}

/** An application with API keys and webhooks runs on the oldest Node, and a SQLite database is refused with a sentence. */
async function checkPostgresOnly(): Promise<void> {
  const project = join(scratch, 'kit');
  copyFileSync(join(root, 'scripts/postgres-only.mjs'), join(project, 'postgres-only.mjs'));
  const node = await nodeProgram(POSTGRES_ONLY);
  const server = await startPostgresServer();
  try {
    await run(node.binary, ['--throw-deprecation', 'postgres-only.mjs', server.url], project);
  } finally {
    await server.stop();
  }
  console.log(`kit: an application on PostgreSQL runs on Node ${node.version}`);
}

async function check(staged: StagedPackage, linters: string): Promise<void> {
  const manifest = JSON.parse(readFileSync(join(staged.folder, 'package.json'), 'utf8')) as Manifest;
  const { tarball } = packStaged(staged, join(scratch, 'tarballs'));
  const linted = lintTarball(tarball, linters);
  const project = await install(manifest.name, tarball);
  const entries = Object.keys(manifest.exports)
    .filter((subpath) => subpath !== './package.json')
    .map((subpath) => manifest.name + subpath.slice(1));
  // Users install a peer for its entry point only: everything else imports without it.
  const behindPeers = new Map(Object.entries(BEHIND_PEERS).filter(([entry]) => entries.includes(entry)));
  const importing = (names: readonly string[]) =>
    `for (const name of ${JSON.stringify(names)}) if (Object.keys(await import(name)).length === 0) throw new Error(name + ' exports nothing');`;
  if (behindPeers.size > 0) {
    writeFileSync(join(project, 'without-peers.mjs'), importing(entries.filter((entry) => !behindPeers.has(entry))));
    await run(process.execPath, ['--throw-deprecation', 'without-peers.mjs'], project);
    // The versions that our tests use: the newest of a range may need packages that the registry does not have.
    const peers = [...behindPeers.values()].flat().map((peer) => `${peer}@${versionHere(peer)}`);
    await run('npm', ['install', '--ignore-scripts', '--no-save', ...peers], project);
  }
  writeFileSync(join(project, 'import.mjs'), importing(entries));
  const startOn = async (promised: string): Promise<void> => {
    const { binary, version } = await nodeProgram(promised);
    await run(binary, ['--throw-deprecation', 'import.mjs'], project);
    for (const file of new Set(Object.values(manifest.bin ?? {})))
      await run(binary, [join(project, 'node_modules', manifest.name, file), '--help'], project);
    console.log(`${manifest.name}: ${entries.length} entry points import and the programs start on Node ${version}`);
  };
  await Promise.all((NODES[manifest.name] ?? []).map(startOn));
  await linted;
  console.log(`${manifest.name}: publint and attw find no fault with the package`);
}

try {
  // Downloads take no processor time: they run while the packages are built.
  const downloads = Promise.all([installLinters(join(scratch, 'linters')), ...Object.values(NODES).flat().map(nodeProgram)]);
  // Types are checked by `npm run types`.
  const [[linters]] = await Promise.all([downloads, run(process.execPath, [join(root, 'scripts/build.ts'), '--no-check'], root)]);
  for (const staged of stagePackages(WORKSPACE_NAMES, join(scratch, 'staged'))) await check(staged, linters);
  await checkPostgresOnly();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
