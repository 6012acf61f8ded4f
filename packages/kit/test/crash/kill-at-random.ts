import { setTimeout as pause } from 'node:timers/promises';
import type { Processes } from './processes.ts';

export interface RandomKills {
  /** How often a random process is killed with SIGKILL. */
  readonly kills: number;
  /** Called `restarts` times in between: restarts the database server. */
  readonly restart?: (() => Promise<void>) | undefined;
  readonly restarts?: number | undefined;
  /** Gives the processes work, before each kill. */
  readonly beforeKill?: () => Promise<void>;
}

/** Kills processes at random moments, each replaced by a new one, and restarts the database between kills. */
export async function killAtRandom<Kind extends string>(
  processes: Processes<Kind>,
  fallback: NoInfer<Kind>,
  { kills, restart, restarts = 0, beforeKill }: RandomKills,
): Promise<void> {
  const restartEvery = restarts === 0 ? Infinity : Math.max(1, Math.floor(kills / (restarts + 1)));
  for (let n = 1; n <= kills; n++) {
    await beforeKill?.();
    await pause(50 + Math.random() * 250);
    await processes.killOne(fallback);
    // A long run shows that it is alive.
    if (n % 10 === 0) process.stdout.write(`crash loop: ${n} of ${kills} kills\n`);
    if (restart !== undefined && n % restartEvery === 0 && n / restartEvery <= restarts) await restart();
  }
}
