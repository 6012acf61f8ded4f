#!/usr/bin/env node
// Plain JavaScript that every Node can parse: an old one gets a sentence instead of a syntax error.
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 24 || (major === 24 && minor < 15)) {
  process.stderr.write(
    `error: A new project needs Node.js 24.15 or later; this is ${process.versions.node}. Install a current LTS release.\n`,
  );
  process.exit(1);
}

const { main } = await import('../dist/main.js');
process.exitCode = await main(process.argv.slice(2));
