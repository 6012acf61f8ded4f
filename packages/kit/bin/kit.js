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

// Compiled code is kept in the system's temporary folder: the second start takes half the time of the first.
module.enableCompileCache();

const source = new URL('../src/cli/main.ts', import.meta.url);

if (!existsSync(source)) await import('../dist/cli/main.js');
else if (process.execArgv.includes('--conditions=source')) await import(source.href);
else {
  // In the workspace packages resolve one another to their sources, which takes a flag of Node itself.
  const args = ['--conditions=source', ...process.execArgv, fileURLToPath(import.meta.url), ...process.argv.slice(2)];
  const child = spawn(process.execPath, args, { stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => process.exit(code ?? (signal === null ? 1 : 128)));
}
