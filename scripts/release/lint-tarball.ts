import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Exact: each was seen to install from the registry, without install scripts. */
const TOOLS = ['publint@0.3.25', '@arethetypeswrong/cli@0.18.5'];

/** Installs the programs that `lintTarball` runs. They are not part of the workspace, which would make every `npm ci` fetch them. */
export async function installLinters(folder: string): Promise<string> {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"private":true}');
  await run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--no-save', ...TOOLS], folder);
  return folder;
}

/** Fails with the report of a program that finds fault with a package as it would be published. */
export async function lintTarball(tarball: string, linters: string): Promise<void> {
  const program = (path: string): string => join(linters, 'node_modules', path);
  await run(process.execPath, [program('publint/src/cli.js'), tarball, '--strict'], linters);
  // The packages are ESM only.
  const attw = program('@arethetypeswrong/cli/dist/index.js');
  await run(process.execPath, [attw, tarball, '--profile', 'esm-only', '--no-color', '--format', 'ascii'], linters);
}

async function run(command: string, args: readonly string[], cwd: string): Promise<void> {
  const child = spawn(command, args, { cwd, env: { ...process.env, NODE_OPTIONS: '' }, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} failed:\n${output}`);
}
