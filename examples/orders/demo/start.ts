// `npm start` runs the whole example; `npm start -- --better-auth` the orders API on better-auth, with two organizations.
const [option, ...more] = process.argv.slice(2);
if (more.length > 0 || (option !== undefined && option !== '--better-auth')) {
  process.stderr.write(`Unknown option ${JSON.stringify([option, ...more].join(' '))}. Known: --better-auth.\n`);
  process.exit(1);
}
await(option === undefined ? import('./main.ts') : import('../better-auth/main.ts'));
