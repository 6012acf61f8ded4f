import type { AdminTile } from '../../app/admin/sections.ts';
import type { Database } from '../../db/engine/db.ts';
import type { StatementOutcome } from '../../db/engine/long-statement.ts';

const MINUTES = 15;
const MINUTE_MS = 60_000;
/** As the alert of Prometheus has it: one in ten seconds. */
const MANY = MINUTES * 6;

type Counts = Record<StatementOutcome, number>;
const none = (): Counts => ({ timed_out: 0, rejected: 0, cancelled: 0 });

/** Reads of requests that ended before their rows were read, in this process, by the minute. */
export class StoppedReads {
  readonly #minutes = new Map<number, Counts>();
  #databases: readonly Database[] = [];
  #ends: readonly (() => void)[] = [];

  start(databases: readonly Database[], now: () => Date): void {
    this.#databases = databases;
    this.#ends = databases.map((database) => database.observe({ onStatementEnd: (outcome) => this.#note(outcome, now()) }));
  }

  stop(): void {
    for (const end of this.#ends) end();
    this.#ends = [];
  }

  #note(outcome: StatementOutcome, now: Date): void {
    const minute = Math.floor(now.getTime() / MINUTE_MS);
    const counts = this.#minutes.get(minute) ?? none();
    counts[outcome] += 1;
    this.#minutes.set(minute, counts);
    for (const each of this.#minutes.keys()) if (each <= minute - MINUTES) this.#minutes.delete(each);
  }

  tile(now: Date): AdminTile {
    const first = Math.floor(now.getTime() / MINUTE_MS) - MINUTES;
    const found = none();
    for (const [minute, counts] of this.#minutes)
      if (minute > first) for (const outcome of ['timed_out', 'rejected', 'cancelled'] as const) found[outcome] += counts[outcome];
    const waiting = this.#databases
      .flatMap(({ pool: { waitingForShare } }) => Object.values(waitingForShare ?? {}))
      .reduce((sum, each) => sum + each, 0);
    const stopped = found.timed_out + found.rejected;
    return {
      label: 'Reads stopped',
      value: stopped,
      unit: 'count',
      tone: stopped >= MANY ? 'warning' : 'good',
      hint:
        stopped + found.cancelled + waiting === 0
          ? `In this process, in the last ${MINUTES} minutes.`
          : `In this process, in the last ${MINUTES} minutes: ${found.timed_out} passed their deadline, ${found.rejected} were rejected, ${found.cancelled} ended with their client. ${waiting} wait now. The log has the route and the missing index.`,
    };
  }
}
