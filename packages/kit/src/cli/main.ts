import { readFileSync } from 'node:fs';
import { keepLogApart, runProgram } from './program.ts';

const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string };

const argv = process.argv.slice(2);
keepLogApart(argv, process.env);

const code = await runProgram({
  argv,
  cwd: process.cwd(),
  environment: process.env,
  terminal: { stdin: process.stdin, stdout: process.stdout, stderr: process.stderr },
  version: manifest.version,
});

// Everything the program opened is closed. What the app's own file may have left running must not keep a finished
// command alive; pipes are emptied first, because exiting drops what they have not taken yet.
process.stdout.write('', () => process.stderr.write('', () => process.exit(code)));
