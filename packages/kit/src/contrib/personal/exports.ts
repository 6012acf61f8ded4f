import type { App } from '../../app/declare/module.ts';
import { exportSubject } from '../../crud/subjects/export-subject.ts';
import type { Row } from '../../db/declare/rows.ts';
import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import type { Db } from '../../db/engine/db.ts';
import { find, insert, update } from '../../db/rows/repository.ts';
import { uuidv7 } from '../../db/values/uuidv7.ts';
import { personalExportParts, personalExports } from './models.ts';

export type PersonalExport = Row<typeof personalExports>;

const DAY_MS = 86_400_000;
const LEASE_MS = 60_000;
const PART_BYTES = 256 * 1024;

/** The export of a person; one that has expired is none. */
export async function findExport(db: Db, userId: string): Promise<PersonalExport | undefined> {
  const found = await find(db, personalExports, userId);
  return found?.expires_at !== null && found !== undefined && found.expires_at <= db.clock.now() ? undefined : found;
}

/** Asks for an export, in a transaction. One that is under way stays as it is; a new one takes the place of an older. */
export async function requestExport(tx: Db, userId: string): Promise<PersonalExport> {
  const known = await find(tx, personalExports, userId, { lock: true });
  if (known?.state === 'waiting' || known?.state === 'running') return known;
  const fresh = {
    state: 'waiting' as const,
    requested_at: tx.clock.now(),
    finished_at: null,
    expires_at: null,
    bytes: 0n,
    leased_until: null,
    attempt: null,
  };
  if (known === undefined) return insert(tx, personalExports, { user_id: userId, ...fresh });
  await tx.query('delete from personal_export_parts where user_id = $1', [userId]);
  return (await update(tx, personalExports, userId, fresh)) ?? known;
}

/** Writes one export that waits, or whose process was killed. Returns whether there was one. */
export async function buildNextExport(app: App, exportDays: number, signal: AbortSignal): Promise<boolean> {
  const { db } = app;
  const claimed = await db.transaction(claim, CONFLICT_RETRIES);
  if (claimed === undefined) return false;
  const { userId, attempt } = claimed;
  let bytes = 0;
  let number = 0;
  let waiting: Uint8Array[] = [];
  let size = 0;
  /** False: another process has the export. */
  const store = async (): Promise<boolean> => {
    const data = Buffer.concat(waiting);
    [waiting, size] = [[], 0];
    bytes += data.length;
    number += 1;
    return db.transaction(async (tx) => {
      const isOwn = await renew(tx, userId, attempt);
      if (isOwn && data.length > 0) await insert(tx, personalExportParts, { user_id: userId, attempt, number, data });
      return isOwn;
    }, CONFLICT_RETRIES);
  };
  try {
    for await (const piece of exportSubject(app, { kind: 'person', id: userId }, { signal })) {
      waiting.push(piece);
      size += piece.length;
      if (size >= PART_BYTES && !(await store())) return true;
    }
    if (!(await store())) return true;
  } catch (error) {
    // One that is stopped is written again by the next process.
    const state = signal.aborted ? 'waiting' : 'failed';
    await db.execute(`update personal_exports set state = $3, leased_until = null where user_id = $1 and attempt = $2`, [
      userId,
      attempt,
      state,
    ]);
    if (signal.aborted) return true;
    throw error;
  }
  const now = app.clock.now();
  await db.transaction(async (tx) => {
    const { count } = await tx.execute(
      `update personal_exports set state = 'ready', leased_until = null, bytes = $3, finished_at = $4, expires_at = $5 where user_id = $1 and attempt = $2`,
      [userId, attempt, BigInt(bytes), now, new Date(now.getTime() + exportDays * DAY_MS)],
    );
    if (count === 1)
      await app.registry.audit?.record(tx, [
        { actor: 'personal_data', action: 'person.exported', target_type: 'person', target_id: userId },
      ]);
  }, CONFLICT_RETRIES);
  return true;
}

async function claim(tx: Db): Promise<{ userId: string; attempt: string } | undefined> {
  const now = tx.clock.now();
  const lock = tx.dialect === 'postgres' ? ' for update skip locked' : '';
  const [found] = await tx.query<{ user_id: string }>(
    `select user_id from personal_exports where state = 'waiting' or (state = 'running' and leased_until < $1) order by requested_at limit 1${lock}`,
    [now],
  );
  if (found === undefined) return undefined;
  const attempt = uuidv7(tx.clock);
  await tx.query('delete from personal_export_parts where user_id = $1', [found.user_id]);
  await update(tx, personalExports, found.user_id, { state: 'running', attempt, leased_until: new Date(now.getTime() + LEASE_MS) });
  return { userId: found.user_id, attempt };
}

async function renew(tx: Db, userId: string, attempt: string): Promise<boolean> {
  const { count } = await tx.execute(
    `update personal_exports set leased_until = $3 where user_id = $1 and attempt = $2 and state = 'running'`,
    [userId, attempt, new Date(tx.clock.now().getTime() + LEASE_MS)],
  );
  return count === 1;
}

/** The bytes of an export that is ready. */
export async function* exportedBytes(db: Db, { user_id: userId, attempt }: PersonalExport): AsyncGenerator<Uint8Array> {
  for (let number = 1; ; number++) {
    const part = await find(db, personalExportParts, { user_id: userId, attempt: attempt ?? '', number });
    if (part === undefined) return;
    yield part.data;
  }
}

/** Removes exports whose days are over. */
export async function removeExpired(db: Db): Promise<number> {
  const { count } = await db.execute('delete from personal_exports where expires_at < $1', [db.clock.now()]);
  return count;
}
