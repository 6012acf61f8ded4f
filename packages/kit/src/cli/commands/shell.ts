import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Recoverable, start, type REPLServer } from 'node:repl';
import { PassThrough } from 'node:stream';
import { inspect } from 'node:util';
import { CliFailure } from '../cli-failure.ts';
import type { CliContext } from '../context.ts';
import type { CoreCommand } from '../core-command.ts';
import { shellScope, type ShellScope } from '../shell-scope.ts';

export const shellCommand: CoreCommand = (command, context) => {
  command.addHelpText('after', HELP).action(async () => {
    const scope = shellScope(await context.app());
    await (context.terminal.stdin.isTTY ? interactive(scope, context) : fromPipe(scope, context));
  });
};

const HELP = `
app         the app, ready
db          its database: await db.query('select count(*) as n from orders')
resources   the CRUD resources by name
as(user)    the resources as this user reaches them, by the rules of their policies:
              const ada = await as('ada', { tenant: 'north' })
              await ada.order.rows({ status: 'open' })
Lines may come from a pipe; the first that fails ends the command with exit code 1. Writes are not undone.`;

async function interactive(scope: ShellScope, context: CliContext): Promise<void> {
  const names = Object.keys(scope.resources).join(', ') || 'none';
  context.print(`${context.paint('bold', scope.app.title)} on ${scope.db.url}. app, db, as(user), resources: ${names}. Ctrl-D leaves.`);
  const repl = start({ prompt: 'kit> ', input: context.terminal.stdin, output: context.terminal.stdout });
  Object.assign(repl.context, scope);
  await once(repl, 'exit');
}

/** One line after the other: the REPL itself would not wait for a promise before it reads on. */
async function fromPipe(scope: ShellScope, context: CliContext): Promise<void> {
  const complaints = new PassThrough();
  const repl = start({ prompt: '', input: new PassThrough(), output: complaints });
  Object.assign(repl.context, scope);
  let begun = '';
  try {
    for await (const line of createInterface({ input: context.terminal.stdin })) {
      begun += `${line}\n`;
      const evaluated = await evaluate(repl, begun, complaints);
      if (evaluated.isIncomplete) continue;
      begun = '';
      if (evaluated.result !== undefined) context.print(inspect(evaluated.result));
    }
  } finally {
    repl.close();
  }
  if (begun.trim() !== '') context.fail('The last lines are not complete.');
}

interface Evaluated {
  readonly result?: unknown;
  /** More lines are needed. */
  readonly isIncomplete?: boolean;
}

/** Frames up to the last line that was typed: those below it are the shell's own. An error without such a frame keeps its stack. */
function ownFrames(text: string): string {
  const lines = text.split('\n');
  const last = lines.findLastIndex((line) => /^\s+at (?:.*\()?kit shell:\d+/.test(line));
  return lines.filter((line, index) => last < 0 || index <= last || !/^\s+at /.test(line)).join('\n');
}

/** The REPL calls back with a result or a syntax error; what awaited code throws it writes to its output only. */
function evaluate(repl: REPLServer, code: string, complaints: PassThrough): Promise<Evaluated> {
  const { promise, resolve, reject } = Promise.withResolvers<Evaluated>();
  const complained = (text: Buffer): void =>
    reject(
      new CliFailure(
        ownFrames(
          text
            .toString()
            .replace(/^Uncaught:?\s*/, '')
            .trim(),
        ),
      ),
    );
  complaints.once('data', complained);
  repl.eval(code, repl.context, 'kit shell', (error, result: unknown) => {
    if (error instanceof Recoverable) resolve({ isIncomplete: true });
    else if (error === null) resolve({ result });
    else reject(error);
  });
  return promise.finally(() => complaints.off('data', complained));
}
