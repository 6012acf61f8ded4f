import type { Db } from '../../../db/engine/db.ts';
import { uuidv7 } from '../../../db/values/uuidv7.ts';
import type { Clock } from '../../../db/clock.ts';

export interface FactorRow {
  readonly user_id: string;
  readonly secret: string | null;
  readonly pending_secret: string | null;
  readonly confirmed_at: Date | null;
  readonly last_step: number;
}

const FACTOR = 'user_id, secret, pending_secret, confirmed_at, last_step';

export async function findFactor(db: Db, userId: string): Promise<FactorRow | null> {
  const [row] = await db.query<FactorRow>(`select ${FACTOR} from user_factors where user_id = $1`, [userId]);
  return row ?? null;
}

/** A factor that is in use stays in use until the new one is confirmed. */
export async function putPendingSecret(tx: Db, userId: string, secret: string, now: Date): Promise<void> {
  await tx.query(
    `insert into user_factors (user_id, pending_secret, last_step, attempts, attempts_since, created_at) values ($1, $2, 0, 0, $3, $3)
     on conflict (user_id) do update set pending_secret = excluded.pending_secret`,
    [userId, secret, now],
  );
}

/**
 * Takes one attempt of at most `max` per window; false when there is none left. One statement, so that parallel attempts in several processes
 * are counted one after the other: the row is locked while it is updated.
 */
export async function takeAttempt(db: Db, userId: string, max: number, now: Date, windowStart: Date): Promise<boolean> {
  const taken = await db.query(
    `update user_factors set
       attempts = case when attempts_since <= $3 then 1 else attempts + 1 end,
       attempts_since = case when attempts_since <= $3 then $2 else attempts_since end
     where user_id = $1 and (attempts_since <= $3 or attempts < $4) returning user_id`,
    [userId, now, windowStart, max],
  );
  return taken.length === 1;
}

/** True for one caller per step: a code is good for one login, also when two arrive together. */
export async function useStep(db: Db, userId: string, step: number): Promise<boolean> {
  const used = await db.query(
    'update user_factors set last_step = $2, attempts = 0 where user_id = $1 and last_step < $2 returning user_id',
    [userId, step],
  );
  return used.length === 1;
}

/** The pending secret becomes the factor, if it is still the one that the code was computed from. */
export async function confirmSecret(tx: Db, userId: string, secret: string, step: number, now: Date): Promise<boolean> {
  const confirmed = await tx.query(
    `update user_factors set secret = $2, pending_secret = null, confirmed_at = $4, last_step = $3, attempts = 0
     where user_id = $1 and pending_secret = $2 returning user_id`,
    [userId, secret, step, now],
  );
  return confirmed.length === 1;
}

/** After this user, in the order of the key. */
export function readSealed(db: Db, after: string, limit: number): Promise<Pick<FactorRow, 'user_id' | 'secret' | 'pending_secret'>[]> {
  return db.query('select user_id, secret, pending_secret from user_factors where user_id > $1 order by user_id limit $2', [after, limit]);
}

/** False when it was changed meanwhile. */
export async function replaceSealed(
  db: Db,
  userId: string,
  column: 'secret' | 'pending_secret',
  from: string,
  to: string,
): Promise<boolean> {
  const replaced = await db.query(`update user_factors set ${column} = $3 where user_id = $1 and ${column} = $2 returning user_id`, [
    userId,
    from,
    to,
  ]);
  return replaced.length === 1;
}

/** Whether a factor in use is stored as it is. */
export async function hasPlainSecret(db: Db): Promise<boolean> {
  return (await db.query(`select 1 as one from user_factors where secret is not null and secret not like 'fernet:%' limit 1`)).length > 0;
}

export async function deleteFactor(tx: Db, userId: string): Promise<boolean> {
  await tx.query('delete from user_recovery_codes where user_id = $1', [userId]);
  return (await tx.query('delete from user_factors where user_id = $1 returning user_id', [userId])).length === 1;
}

export async function replaceRecoveryCodes(tx: Db, userId: string, digests: readonly string[], clock: Clock): Promise<void> {
  await tx.query('delete from user_recovery_codes where user_id = $1', [userId]);
  for (const digest of digests)
    await tx.query('insert into user_recovery_codes (id, user_id, code_digest) values ($1, $2, $3)', [uuidv7(clock), userId, digest]);
}

/** True for one caller per code. */
export async function useRecoveryCode(db: Db, userId: string, digest: string): Promise<boolean> {
  const used = await db.query('delete from user_recovery_codes where user_id = $1 and code_digest = $2 returning id', [userId, digest]);
  if (used.length === 1) await db.query('update user_factors set attempts = 0 where user_id = $1', [userId]);
  return used.length === 1;
}

export async function countRecoveryCodes(db: Db, userId: string): Promise<number> {
  const [row] = await db.query<{ count: number | bigint }>('select count(*) as count from user_recovery_codes where user_id = $1', [
    userId,
  ]);
  return Number(row?.count ?? 0);
}
