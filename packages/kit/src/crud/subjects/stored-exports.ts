import { coreErrors } from '../../errors/core-errors.ts';
import type { App } from '../../app/declare/module.ts';
import type { Model } from '../../db/declare/model.ts';
import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import type { Db } from '../../db/engine/db.ts';
import { find, insert, update } from '../../db/rows/repository.ts';
import type { SubjectKind } from '../../db/subjects/subject.ts';
import { uuidv7 } from '../../db/values/uuidv7.ts';
import { exportSubject } from './export-subject.ts';

/** `running`: a process writes it; one that was killed is followed by another. */
export const EXPORT_STATES = ['waiting', 'running', 'ready', 'failed'] as const;

/** The newest export of a subject, as its table has it. */
export interface StoredExport {
  readonly state: (typeof EXPORT_STATES)[number];
  readonly requested_at: Date;
  readonly finished_at: Date | null;
  readonly expires_at: Date | null;
  readonly bytes: bigint;
  readonly percent: number;
  /** Until when a process has it. */
  readonly leased_until: Date | null;
  /** Changes with every attempt: parts of an earlier one are not among those of the next. */
  readonly attempt: string | null;
}

/** One attempt to write an export. */
export interface ExportAttempt {
  readonly id: string;
  readonly attempt: string;
}

interface Tables {
  readonly kind: SubjectKind;
  /** One row for each subject. */
  readonly exports: Model;
  /** The archive in parts: every process can send it, and no file is left behind. */
  readonly parts: Model;
  /** The column of both with the id of the subject. */
  readonly key: string;
  /** Who audit entries say has exported. */
  readonly program: string;
}

const DAY_MS = 86_400_000;
const LEASE_MS = 60_000;
const PART_BYTES = 256 * 1024;

/** Exports of people or tenants that wait in a table of a module, are written in the background and downloaded until they expire. */
export class StoredExports {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** The export of a subject; one that has expired is none. */
  async find(db: Db, id: string): Promise<StoredExport | undefined> {
    const found = (await find(db, this.#tables.exports, id)) as unknown as StoredExport | undefined;
    return found === undefined || (found.expires_at !== null && found.expires_at <= db.clock.now()) ? undefined : found;
  }

  /** Asks for an export, in a transaction: it takes the place of an older one. `more`: other columns of the table. */
  async request(tx: Db, id: string, more: object = {}): Promise<StoredExport> {
    const { exports, parts, key } = this.#tables;
    const fresh = {
      state: 'waiting',
      requested_at: tx.clock.now(),
      finished_at: null,
      expires_at: null,
      bytes: 0n,
      percent: 0,
      leased_until: null,
      attempt: null,
      ...more,
    };
    const known = await find(tx, exports, id, { lock: true });
    if (known === undefined) return (await insert(tx, exports, { [key]: id, ...fresh })) as unknown as StoredExport;
    await tx.query(`delete from ${parts.name} where ${key} = $1`, [id]);
    return (await update(tx, exports, id, fresh)) as unknown as StoredExport;
  }

  /** Takes the oldest export that waits, or whose process was killed. */
  async claimNext(db: Db): Promise<ExportAttempt | undefined> {
    const { exports, key } = this.#tables;
    return db.transaction(async (tx) => {
      const lock = tx.dialect === 'postgres' ? ' for update skip locked' : '';
      const [found] = await tx.query<{ id: string }>(
        `select ${key} as id from ${exports.name} where state = 'waiting' or (state = 'running' and leased_until < $1) order by requested_at limit 1${lock}`,
        [tx.clock.now()],
      );
      return found === undefined ? undefined : this.#begin(tx, found.id);
    }, CONFLICT_RETRIES);
  }

  /** Takes one export that is not ready, for a caller that nobody else is with, such as the run of a job: whoever had it before stops at its next part. */
  async claim(db: Db, id: string): Promise<ExportAttempt | undefined> {
    return db.transaction(async (tx) => {
      const found = (await find(tx, this.#tables.exports, id, { lock: true })) as unknown as StoredExport | undefined;
      return found === undefined || found.state === 'ready' ? undefined : this.#begin(tx, id);
    }, CONFLICT_RETRIES);
  }

  async #begin(tx: Db, id: string): Promise<ExportAttempt> {
    const { exports, parts, key } = this.#tables;
    const attempt = uuidv7(tx.clock);
    await tx.query(`delete from ${parts.name} where ${key} = $1`, [id]);
    const leased_until = new Date(tx.clock.now().getTime() + LEASE_MS);
    await update(tx, exports, id, { state: 'running', attempt, leased_until, percent: 0 });
    return { id, attempt };
  }

  /** Writes a claimed export, with an audit entry. One that is stopped waits again; one that fails says so. */
  async write(
    app: App,
    claimed: ExportAttempt,
    { days, signal, onProgress }: { readonly days: number; readonly signal: AbortSignal; onProgress?: (percent: number) => Promise<void> },
  ): Promise<void> {
    const { kind, exports, key } = this.#tables;
    const { id, attempt } = claimed;
    let [bytes, number, size, percent] = [0, 0, 0, 0];
    let waiting: Uint8Array[] = [];
    /** False: another process has the export. */
    const store = async (): Promise<boolean> => {
      const data = Buffer.concat(waiting);
      [waiting, size] = [[], 0];
      bytes += data.length;
      number += 1;
      const isOwn = await this.#storePart(app.db, claimed, { number, data, percent });
      if (isOwn) await onProgress?.(percent);
      return isOwn;
    };
    const onTable = (done: number, tables: number) => {
      percent = Math.floor((100 * done) / tables);
    };
    try {
      for await (const piece of exportSubject(app, { kind, id }, { signal, onTable })) {
        waiting.push(piece);
        size += piece.length;
        if (size >= PART_BYTES && !(await store())) return;
      }
      if (!(await store())) return;
    } catch (error) {
      // One that is stopped is written again by the next process.
      await app.db.execute(`update ${exports.name} set state = $3, leased_until = null where ${key} = $1 and attempt = $2`, [
        id,
        attempt,
        signal.aborted ? 'waiting' : 'failed',
      ]);
      throw error;
    }
    await this.#finish(app, claimed, { bytes, days });
  }

  async #storePart(
    db: Db,
    { id, attempt }: ExportAttempt,
    { number, data, percent }: { readonly number: number; readonly data: Buffer; readonly percent: number },
  ): Promise<boolean> {
    const { exports, parts, key } = this.#tables;
    return db.transaction(async (tx) => {
      const { count } = await tx.execute(
        `update ${exports.name} set leased_until = $3, percent = $4 where ${key} = $1 and attempt = $2 and state = 'running'`,
        [id, attempt, new Date(tx.clock.now().getTime() + LEASE_MS), percent],
      );
      if (count === 1 && data.length > 0) await insert(tx, parts, { [key]: id, attempt, number, data });
      return count === 1;
    }, CONFLICT_RETRIES);
  }

  async #finish(
    app: App,
    { id, attempt }: ExportAttempt,
    { bytes, days }: { readonly bytes: number; readonly days: number },
  ): Promise<void> {
    const { kind, exports, key, program } = this.#tables;
    const now = app.db.clock.now();
    await app.db.transaction(async (tx) => {
      const { count } = await tx.execute(
        `update ${exports.name} set state = 'ready', leased_until = null, percent = 100, bytes = $3, finished_at = $4, expires_at = $5
         where ${key} = $1 and attempt = $2 and state = 'running'`,
        [id, attempt, BigInt(bytes), now, new Date(now.getTime() + days * DAY_MS)],
      );
      if (count !== 1) return;
      const entry = { actor: program, action: `${kind}.exported`, target_type: kind, target_id: id };
      await app.registry.audit?.record(tx, [{ ...entry, ...(kind === 'tenant' ? { tenant: id } : {}) }]);
    }, CONFLICT_RETRIES);
  }

  /** The bytes of an export that is ready. Throws where another one takes its place, or its days are over, before all of them are sent: a part must not look whole. */
  async *bytes(db: Db, id: string, { attempt, bytes }: StoredExport, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    const { parts, key } = this.#tables;
    for (let [number, sent] = [1, 0n]; sent < bytes; number++) {
      signal?.throwIfAborted();
      const part = await find(db, parts, { [key]: id, attempt: attempt ?? '', number });
      if (part === undefined)
        throw coreErrors.conflict({ detail: 'The export was replaced or removed while it was sent. Ask for it again.' });
      const { data } = part as unknown as { readonly data: Uint8Array };
      sent += BigInt(data.length);
      yield data;
    }
  }

  /** Removes exports whose days are over. */
  async removeExpired(db: Db): Promise<number> {
    const { count } = await db.execute(`delete from ${this.#tables.exports.name} where expires_at < $1`, [db.clock.now()]);
    return count;
  }
}
