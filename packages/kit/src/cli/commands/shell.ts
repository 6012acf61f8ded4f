import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Recoverable, type ReplOptions, start, type REPLServer } from 'node:repl';
import { PassThrough } from 'node:stream';
import { inspect, types } from 'node:util';
import { CliFailure } from '../terminal/cli-failure.ts';
import type { AnyResource } from '../../crud/declare/resource.ts';
import type { CliContext } from '../load/context.ts';
import type { CoreCommand } from '../load/core-command.ts';
import { isReached, shellScope, type ShellScope } from '../load/shell-scope.ts';

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
            as('ada', { audience: 'staff' }) has the resources of this audience
Lines may come from a pipe; the first that fails ends the command with exit code 1. Writes are not undone.`;

async function interactive(scope: ShellScope, context: CliContext): Promise<void> {
  const names = Object.keys(scope.resources);
  const known = names.join(', ') || 'none';
  context.print(`${context.paint('bold', scope.app.title)} on ${scope.db.url}. app, db, as(user), resources: ${known}. Ctrl-D leaves.`);
  const example = names.find((name) => isReached(scope.resources[name] as AnyResource));
  if (example !== undefined && scope.app.users !== null)
    context.print(context.paint('dim', `Try: (await as('ada')).${example}.rows()    with the name of a user`));
  const repl = startRepl(scope, { prompt: 'kit> ', input: context.terminal.stdin, output: context.terminal.stdout });
  await once(repl, 'exit');
}

/** A line that ends in a promise shows its value: `db.query('…')` needs no `await`. */
function startRepl(scope: ShellScope, options: ReplOptions): REPLServer {
  const repl = start(options);
  Object.assign(repl.context, scope);
  const evaluate = repl.eval.bind(repl);
  const evaluateAndWait: REPLServer['eval'] = (code, context, file, done) =>
    evaluate(code, context, file, (error, result: unknown) => void settle(error, result, done));
  Object.assign(repl, { eval: evaluateAndWait });
  return repl;
}

async function settle(error: Error | null, result: unknown, done: (error: Error | null, result: unknown) => void): Promise<void> {
  if (error !== null || !types.isPromise(result)) return done(error, result);
  try {
    const value: unknown = await result;
    done(null, value);
  } catch (reason) {
    done(reason as Error, undefined);
  }
}

/** One line after the other: the REPL itself would not wait for a promise before it reads on. */
async function fromPipe(scope: ShellScope, context: CliContext): Promise<void> {
  const complaints = new PassThrough();
  const repl = startRepl(scope, { prompt: '', input: new PassThrough(), output: complaints });
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

/**
 * Frames up to the last line that was typed: those below it are the shell's own, and so are those of its functions. An error without a frame of a
 * typed line keeps its stack.
 */
function ownFrames(text: string): string {
  const lines = text.split('\n').filter((line) => !/^\s+at .*(?:\/cli\/load\/shell-scope\.|node:internal\/)/.test(line));
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
