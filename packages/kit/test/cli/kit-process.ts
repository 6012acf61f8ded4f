// Runs command lines of `kit` one after the other, as bin/kit.js does, in one process: loading the program takes longer than most commands.
// Each line of standard input is one command as JSON. Standard output and standard error end with END_OF_RUN after each of them.
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { keepLogApart, runProgram } from '../../src/cli/program.ts';
import { END_OF_RUN, type KitCommand } from './kit-program.ts';

let runs = 0;

async function execute({ args, cwd, environment, input }: KitCommand): Promise<number> {
  process.chdir(cwd);
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, environment);
  keepLogApart(args, process.env);
  runs += 1;
  return runProgram({
    argv: args,
    cwd,
    environment: process.env,
    terminal: { stdin: Readable.from(input === '' ? [] : [input]) as NodeJS.ReadStream, stdout: process.stdout, stderr: process.stderr },
    version: '0.0.0',
    // A query makes it another module: the file is read again, and the app, which the last run closed, is a new one.
    importConfig: (file) => import(`${pathToFileURL(file).href}?run=${runs}`) as Promise<Record<string, unknown>>,
  });
}

for await (const line of createInterface({ input: process.stdin })) {
  const code = await execute(JSON.parse(line) as KitCommand);
  for (const stream of [process.stderr, process.stdout])
    if (!stream.write(`${END_OF_RUN}${code}${END_OF_RUN}`)) await once(stream, 'drain');
}
