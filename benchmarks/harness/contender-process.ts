import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Contender } from './contest.ts';
import { forgetCpuOf, watchCpuOf } from './turns.ts';

/** A contender in a process of its own, as it would run: what one leaves behind in memory and compiled code is not another's handicap. */
export interface ContenderProcess {
  readonly contender: Contender;
  stop(): Promise<void>;
}

type Answer = 'ready' | { readonly rate: number };

/** Starts `script` (a URL relative to the caller), which must call `contending(measure)`. */
export async function startContender(name: string, script: URL, args: readonly string[]): Promise<ContenderProcess> {
  const child = spawn(process.execPath, ['--conditions=source', fileURLToPath(script), ...args], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const gone = new Promise<void>((done) => child.once('exit', () => done()));
  const answer = (): Promise<Answer> =>
    new Promise((done, failed) => {
      const ended = (code: number | null): void => failed(new Error(`the contender ${name} ended with ${code}`));
      child.once('exit', ended);
      child.once('error', failed);
      child.once('message', (message: Answer) => {
        child.off('exit', ended);
        done(message);
      });
    });
  await answer();
  if (child.pid !== undefined) watchCpuOf(child.pid);
  return {
    contender: {
      name,
      async measure() {
        const measured = answer();
        child.send('measure');
        const result = await measured;
        return result === 'ready' ? Number.NaN : result.rate;
      },
    },
    async stop() {
      if (child.pid !== undefined) forgetCpuOf(child.pid);
      child.kill('SIGTERM');
      await gone;
    },
  };
}

/** Called by a contender's script when it is ready; measures whenever it is asked to, until it is stopped. */
export function contending(measure: () => Promise<number>): void {
  process.on('message', () => {
    void measure().then((rate) => process.send?.({ rate } satisfies Answer));
  });
  process.on('SIGTERM', () => process.exit(0));
  process.on('disconnect', () => process.exit(0));
  process.send?.('ready' satisfies Answer);
}
