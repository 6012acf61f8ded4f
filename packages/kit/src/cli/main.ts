import { readFileSync } from 'node:fs';
import { keepLogApart, runProgram } from './program.ts';

const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string };

// A reader that has enough, such as `head`, is no fault. What a full disk lost is: without this the program would end as if all was written.
let lost: Error | undefined;
const notice = (error?: NodeJS.ErrnoException | null): void => {
  if (error && error.code !== 'EPIPE') lost ??= error;
};
process.stdout.on('error', notice);

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
process.stdout.write('', (error) => {
  notice(error);
  const complaint = lost === undefined ? '' : `error: The output could not be written: ${lost.message}\n`;
  process.stderr.write(complaint, () => process.exit(lost === undefined ? code : code || 1));
});
