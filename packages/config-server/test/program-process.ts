// Runs command lines of this package's programs one after the other, in one process: loading a program takes longer than most commands.
// Each line of standard input is one command as JSON. Standard output and standard error end with END_OF_RUN after each of them.
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { END_OF_RUN, type ProgramCommand } from './program-command.ts';

// A program listens for signals and faults of its process, each time it is run.
process.setMaxListeners(0);
const source = join(import.meta.dirname, '..', 'src');
let runs = 0;

async function execute({ main, args, cwd, environment }: ProgramCommand): Promise<number> {
  process.chdir(cwd);
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, environment);
  process.argv.splice(2, Infinity, ...args);
  process.exitCode = undefined;
  runs += 1;
  // A query makes it another module, which runs; what it imports is there already.
  await import(`${pathToFileURL(join(source, main)).href}?run=${runs}`);
  const code = exitCodeOf(process);
  process.exitCode = undefined;
  return code;
}

const exitCodeOf = ({ exitCode = 0 }: Pick<NodeJS.Process, 'exitCode'>): number => Number(exitCode);

for await (const line of createInterface({ input: process.stdin })) {
  const code = await execute(JSON.parse(line) as ProgramCommand);
  for (const stream of [process.stderr, process.stdout])
    if (!stream.write(`${END_OF_RUN}${code}${END_OF_RUN}`)) await once(stream, 'drain');
}
