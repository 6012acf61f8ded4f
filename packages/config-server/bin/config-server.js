#!/usr/bin/env node
// Plain JavaScript that every Node can parse, so that an old one prints a message instead of a syntax error.
import { existsSync } from 'node:fs';
import process from 'node:process';

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 18)) {
  process.stderr.write(`config-server: refusing to start: Node.js ${process.versions.node} is too old; 22.18 or later is needed\n`);
  process.exit(1);
}

// In the workspace, which has the tests, the sources run. A published package has its sources for editors only.
const source = new URL('../src/cli/main.ts', import.meta.url);
const isWorkspace = existsSync(new URL('../test', import.meta.url));
await import(isWorkspace ? source.href : new URL('../dist/cli/main.js', import.meta.url).href);
