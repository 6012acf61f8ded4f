import type { Db } from '../../db/engine/db.ts';
import { quoteName } from '../../db/declare/names.ts';
import type { TimeBound } from '../../db/sql/where/moving-where.ts';
import type { Item } from '../declare/item.ts';
import type { Policy } from '../policy/policy.ts';
import { CHANGED_ROWS_MAX } from './changed-rows.ts';

/** What streams of a table compare with the time, and when the next row crosses it. */
interface Watched extends TimeBound {
  streams: number;
  /** Undefined: to be looked up. */
  nextMs: number | undefined;
}

/**
 * The moments at which time alone moves rows of a table into lists or out of them: a row crosses `expires_at > now` when its `expires_at` is now. The next one is
 * known, so that nothing is read until then. Whoever asks evaluates the conditions: this only names rows.
 */
export class TimeIndex {
  readonly #policy: Policy;
  readonly #watched = new Map<string, Watched>();

  constructor(policy: Policy) {
    this.#policy = policy;
  }

  add(bounds: readonly TimeBound[]): void {
    for (const bound of bounds) {
      const known = this.#watched.get(placeOf(bound));
      if (known === undefined) this.#watched.set(placeOf(bound), { ...bound, streams: 1, nextMs: undefined });
      else known.streams += 1;
    }
  }

  delete(bounds: readonly TimeBound[]): void {
    for (const bound of bounds) {
      const known = this.#watched.get(placeOf(bound));
      if (known !== undefined && (known.streams -= 1) === 0) this.#watched.delete(placeOf(bound));
    }
  }

  /** When a row crosses a time next. */
  get nextMs(): number {
    return Math.min(Infinity, ...[...this.#watched.values()].map(({ nextMs = 0 }) => nextMs));
  }

  /**
   * Rows that may have crossed a time between two moments, in either direction: clocks are set back, too. `isFollowed`: the first moment is that of the last look
   * ahead, so that what comes next is known.
   */
  async crossed(tx: Db, from: Date, to: Date, isFollowed: boolean): Promise<readonly Item[] | 'too many'> {
    const [firstMs, lastMs] = [from.getTime(), to.getTime()].toSorted((a, b) => a - b) as [number, number];
    const found: Item[] = [];
    for (const { column, offsetMs, nextMs = 0 } of this.#watched.values()) {
      if (isFollowed && from <= to && nextMs > lastMs) continue;
      const { list, table } = this.#policy.statements;
      const name = `t0.${quoteName(column.name)}`;
      found.push(
        ...(await tx.query<Item>(
          `select ${list} from ${table} t0 where ${name} >= $1 and ${name} <= $2 limit ${CHANGED_ROWS_MAX + 1}`,
          [firstMs, lastMs].map((ms) => column.encode(new Date(ms + offsetMs))),
        )),
      );
      if (found.length > CHANGED_ROWS_MAX) return 'too many';
    }
    return found;
  }

  /** Rows that changed may cross a time sooner than those that were known. */
  note(rows: readonly Item[], at: Date): void {
    for (const watched of this.#watched.values())
      for (const row of rows) {
        const value = row[watched.column.name];
        if (watched.nextMs === undefined || !(value instanceof Date)) continue;
        const ms = value.getTime() - watched.offsetMs;
        if (ms >= at.getTime()) watched.nextMs = Math.min(watched.nextMs, ms);
      }
  }

  /** After a look that failed: what it found out is looked up again. */
  forget(): void {
    for (const watched of this.#watched.values()) watched.nextMs = undefined;
  }

  /** Finds out what comes next, where it is not known or has come. `isSetBack`: the clock is, and what has come comes again. */
  async lookAhead(tx: Db, at: Date, isSetBack: boolean): Promise<void> {
    for (const watched of this.#watched.values()) {
      const { column, offsetMs, nextMs } = watched;
      if (!isSetBack && nextMs !== undefined && nextMs > at.getTime()) continue;
      const name = `t0.${quoteName(column.name)}`;
      const { list, table } = this.#policy.statements;
      const [row] = await tx.query<Item>(`select ${list} from ${table} t0 where ${name} >= $1 order by ${name} limit 1`, [
        column.encode(new Date(at.getTime() + offsetMs)),
      ]);
      watched.nextMs = row === undefined ? Infinity : (row[column.name] as Date).getTime() - offsetMs;
    }
  }
}

function placeOf({ column, offsetMs }: TimeBound): string {
  return `${column.name} ${offsetMs}`;
}
