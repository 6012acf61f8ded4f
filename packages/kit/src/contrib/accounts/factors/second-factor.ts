import { randomBytes } from 'node:crypto';
import type { AuditEntry } from '../../../auth/request/audit-sink.ts';
import type { User } from '../../../auth/people/principal.ts';
import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import { requireArguments } from '../../../options/read-options.ts';
import { database, objectWith } from '../../../options/value-rule.ts';
import { accountsOf } from '../users/accounts.ts';
import { accountErrors } from '../errors.ts';
import {
  confirmSecret,
  countRecoveryCodes,
  deleteFactor,
  findFactor,
  putPendingSecret,
  replaceRecoveryCodes,
  takeAttempt,
  useRecoveryCode,
  useStep,
} from './factor-store.ts';
import { newRecoveryCode, normalizeRecoveryCode, RECOVERY_CODES, recoveryDigest } from './recovery-code.ts';
import { deleteSessionsOf, lockUser } from '../users/store.ts';
import { fromBase32, isTotpCode, matchingStep, otpauthUri, SECRET_BYTES, toBase32 } from '../../../auth/request/totp.ts';

/** Of a code of six digits about three are good at any time: 480 guesses a day find one in two years, with the password known. */
const ATTEMPTS_MAX = 5;
const WINDOW_MS = 15 * 60_000;

interface ProvedFactor {
  readonly confirmedAt: Date | null;
}

type Change = Pick<AuditEntry, 'actor' | 'request_id'>;

/** The second factor that was proved; null for a user who has none. Throws when the user has one and the code is missing or wrong. */
export async function proveSecondFactor(db: Db, user: Pick<User, 'id'>, code: string | undefined): Promise<ProvedFactor | null> {
  const factor = await findFactor(db, user.id);
  if (factor === null || factor.secret === null) return null;
  if (code === undefined || code.trim() === '') throw accountErrors.one_time_code_required();
  const now = await attemptAt(db, user.id);
  const given = code.replaceAll(/\s/g, '');
  // A recovery code needs no secret: it works while the keys are missing, too.
  const step = isTotpCode(given) ? matchingStep(fromBase32(opened(db, user.id, factor.secret)), given, now) : null;
  const isUsed = step === null ? await usedRecoveryCode(db, user.id, given) : await useStep(db, user.id, step);
  accountsOf(db).codes?.add({ outcome: isUsed ? 'accepted' : 'refused' });
  if (!isUsed) throw accountErrors.invalid_one_time_code();
  return { confirmedAt: factor.confirmed_at };
}

/** Refuses a login whose user, locked by now, got, lost or replaced the second factor since it was proved: the change has ended the other sessions. */
export async function requireSameFactor(tx: Db, user: Pick<User, 'id'>, proved: ProvedFactor | null): Promise<void> {
  const factor = await findFactor(tx, user.id);
  const isSet = factor !== null && factor.secret !== null;
  if (isSet && proved === null) throw accountErrors.one_time_code_required();
  if (proved !== null && (!isSet || factor.confirmed_at?.getTime() !== proved.confirmedAt?.getTime()))
    throw accountErrors.invalid_one_time_code();
}

/** A new secret, which counts once it is confirmed with a code. */
export async function beginSecondFactor(
  db: Db,
  user: Pick<User, 'id' | 'username'>,
): Promise<{ readonly secret: string; readonly uri: string }> {
  const { clock, title, secrets } = accountsOf(db);
  const secret = toBase32(randomBytes(SECRET_BYTES));
  await putPendingSecret(db, user.id, secrets.seal(secret), clock.now());
  return { secret, uri: otpauthUri(secret, { issuer: title, account: user.username }) };
}

/** Puts the pending secret into use and returns new recovery codes, which are stored as digests only. The user is locked. */
export async function confirmSecondFactor(tx: Db, user: Pick<User, 'id'>, code: string, change: Change): Promise<readonly string[]> {
  const { clock } = accountsOf(tx);
  const factor = await findFactor(tx, user.id);
  const sealed = factor?.pending_secret ?? null;
  if (sealed === null) throw accountErrors.no_pending_factor();
  const step = matchingStep(fromBase32(opened(tx, user.id, sealed)), code.replaceAll(/\s/g, ''), clock.now());
  if (step === null || !(await confirmSecret(tx, user.id, sealed, step, clock.now()))) throw accountErrors.invalid_one_time_code();
  await record(tx, user.id, 'user.second_factor_set', change);
  return newCodes(tx, user.id);
}

/** The guesses at a code that confirms a secret are counted, too: outside the transaction, so that a wrong one stays counted. */
export async function takeConfirmationAttempt(db: Db, user: Pick<User, 'id'>): Promise<void> {
  if (((await findFactor(db, user.id))?.pending_secret ?? null) === null) throw accountErrors.no_pending_factor();
  await attemptAt(db, user.id);
}

/** The user is locked: of two requests at once, the codes of the second stay. */
export async function renewRecoveryCodes(tx: Db, user: Pick<User, 'id'>, change: Change): Promise<readonly string[]> {
  if (!(await hasSecondFactor(tx, user.id))) throw accountErrors.no_second_factor();
  await record(tx, user.id, 'user.recovery_codes_renewed', change);
  return newCodes(tx, user.id);
}

/** Removes factor and recovery codes and ends every session: of a user who lost the device, or by the user. False when there was none. */
export async function removeSecondFactor(tx: Db, user: Pick<User, 'id'>, change: Change): Promise<boolean> {
  // A login that has proved the factor either ran before, or waits and is refused.
  await lockUser(tx, user.id);
  if (!(await deleteFactor(tx, user.id))) return false;
  await deleteSessionsOf(tx, user.id);
  await record(tx, user.id, 'user.second_factor_removed', change);
  return true;
}

/** For a user who lost the device and the recovery codes: the next login can set up a new factor. False when there was none. */
export function resetSecondFactor(db: Db, user: Pick<User, 'id'>, actor: AuditEntry['actor'] = null): Promise<boolean> {
  requireArguments('resetSecondFactor()', { db, user }, { db: database, user: objectWith('a user: { id }') });
  return db.transaction((tx) => removeSecondFactor(tx, user, { actor }), CONFLICT_RETRIES);
}

export async function hasSecondFactor(db: Db, userId: string): Promise<boolean> {
  return ((await findFactor(db, userId))?.secret ?? null) !== null;
}

export async function secondFactorState(
  db: Db,
  userId: string,
): Promise<{ readonly confirmedAt: Date | null; readonly recoveryCodes: number }> {
  const factor = await findFactor(db, userId);
  const confirmedAt = factor === null || factor.secret === null ? null : factor.confirmed_at;
  return { confirmedAt, recoveryCodes: confirmedAt === null ? 0 : await countRecoveryCodes(db, userId) };
}

/** Nothing of it is told to the caller: it is the operator who has to add a key. */
function opened(db: Db, userId: string, sealed: string): string {
  const { secrets, log } = accountsOf(db);
  try {
    return secrets.open(sealed);
  } catch (error) {
    log.error({ err: error, user_id: userId }, 'accounts: the secret of one-time codes cannot be read');
    throw accountErrors.second_factor_unavailable();
  }
}

async function attemptAt(db: Db, userId: string): Promise<Date> {
  const { clock, codes } = accountsOf(db);
  const now = clock.now();
  if (await takeAttempt(db, userId, ATTEMPTS_MAX, now, new Date(now.getTime() - WINDOW_MS))) return now;
  codes?.add({ outcome: 'throttled' });
  throw coreErrors.throttled({
    detail: 'Too many wrong one-time codes. Try again in 15 minutes.',
    headers: { 'retry-after': String(WINDOW_MS / 1000) },
  });
}

async function usedRecoveryCode(db: Db, userId: string, given: string): Promise<boolean> {
  const code = normalizeRecoveryCode(given);
  return code !== null && useRecoveryCode(db, userId, recoveryDigest(code));
}

async function newCodes(tx: Db, userId: string): Promise<readonly string[]> {
  const codes = Array.from({ length: RECOVERY_CODES }, () => newRecoveryCode());
  await replaceRecoveryCodes(tx, userId, codes.map(recoveryDigest), accountsOf(tx).clock);
  return codes;
}

async function record(tx: Db, userId: string, action: string, { actor, request_id }: Change): Promise<void> {
  const entry = { action, target_type: 'user', target_id: userId, actor: actor ?? null, request_id: request_id ?? null };
  await accountsOf(tx).audit()?.record(tx, [entry]);
}
