#!/usr/bin/env node
// Plain JavaScript that every Node can parse: an old one gets a sentence instead of a syntax error.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import module from 'node:module';
import { fileURLToPath } from 'node:url';

const NEEDED = [22, 19];
const [major, minor] = process.versions.node.split('.').map(Number);

if (major < NEEDED[0] || (major === NEEDED[0] && minor < NEEDED[1])) {
  process.stderr.write(
    `kit needs Node.js ${NEEDED.join('.')} or later; this is ${process.versions.node} (${process.execPath}). Install a current LTS release.\n`,
  );
  process.exit(1);
}

// Compiled code is kept for the next start, which takes half the time of the first. In the user's own folder: Node's default is shared by all
// users of the machine, and another of them could put code there that this program then runs.
const { NODE_COMPILE_CACHE, XDG_CACHE_HOME, HOME, LOCALAPPDATA } = process.env;
const cache = NODE_COMPILE_CACHE || XDG_CACHE_HOME || LOCALAPPDATA || (HOME && `${HOME}/.cache`);
if (cache) module.enableCompileCache(cache === NODE_COMPILE_CACHE ? cache : `${cache}/kit`);

const source = new URL('../src/cli/main.ts', import.meta.url);
// In the workspace, which has the tests, the sources run. A published package has its sources for editors only.
const isWorkspace = existsSync(new URL('../test', import.meta.url));

if (!isWorkspace) await import('../dist/cli/main.js');
else if (process.execArgv.includes('--conditions=source')) await import(source.href);
else {
  // In the workspace packages resolve one another to their sources, which takes a flag of Node itself.
  const args = ['--conditions=source', ...process.execArgv, fileURLToPath(import.meta.url), ...process.argv.slice(2)];
  const child = spawn(process.execPath, args, { stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => process.exit(code ?? (signal === null ? 1 : 128)));
}
