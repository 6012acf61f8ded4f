import type { FieldError } from '../../../errors/kit-error.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import { hasHiddenCharacters } from '../../../auth/people/hidden-characters.ts';
import { withoutKeys } from '../../../auth/people/without-keys.ts';
import { isScope, normaliseScopes } from '../../../permissions/scope.ts';
import { quotaFault } from '../../../throttle/quota.ts';
import { rateFault } from '../../../throttle/rate.ts';
import type { KeyChanges } from './store.ts';

/** Characters of a key's label. */
export const NAME_LENGTH_MAX = 100;
/** Scopes are read with every request of the key; more than this is a role, not a list. */
export const SCOPES_MAX = 100;
/** A grace this long is a second key. */
export const GRACE_SECONDS_MAX = 30 * 86_400;

/** Later is more than either database, or a date on the wire, can hold. */
const LATEST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** What a caller may say about a key; undefined is not said. */
export interface KeyFields {
  readonly name?: unknown;
  readonly scopes?: unknown;
  readonly expiresAt?: Date | null | undefined;
  readonly rateLimit?: string | null | undefined;
  readonly quota?: string | null | undefined;
  readonly graceSeconds?: number | undefined;
}

/** Throws one 422 that lists every fault, under the names the fields have on the wire. */
export function checkFields(fields: KeyFields, now: Date): void {
  const errors = fieldFaults(fields, now);
  if (errors.length > 0) throw coreErrors.validation_error({ errors });
}

/** Fields that were checked. */
interface CheckedFields extends Pick<KeyFields, 'expiresAt' | 'rateLimit' | 'quota'> {
  readonly name?: string | undefined;
  readonly scopes?: readonly string[] | undefined;
}

/** The columns that an edit or a rotation writes: undefined keeps a value, null clears it. */
export function changesOf({ name, scopes, expiresAt, rateLimit, quota }: CheckedFields): KeyChanges {
  return {
    ...(name === undefined ? {} : { name: name.trim() }),
    ...(scopes === undefined ? {} : { scopes: normaliseScopes(scopes) }),
    ...(expiresAt === undefined ? {} : { expires_at: expiresAt }),
    ...(rateLimit === undefined ? {} : { rate_limit: rateLimit }),
    ...(quota === undefined ? {} : { quota }),
  };
}

export function fieldFaults(fields: KeyFields, now: Date): FieldError[] {
  const errors: FieldError[] = [];
  const fault = (location: readonly (string | number)[], code: string, message: string) =>
    errors.push({ location: ['body', ...location], code, message });
  if (fields.name !== undefined) nameFaults(fields.name, fault);
  if (fields.scopes !== undefined) scopeFaults(fields.scopes, fault);
  const { expiresAt, rateLimit, quota, graceSeconds } = fields;
  if (expiresAt !== undefined && expiresAt !== null) {
    const time = expiresAt instanceof Date ? expiresAt.getTime() : Number.NaN;
    if (Number.isNaN(time) || time > LATEST_MS)
      fault(['expires_at'], 'invalid_date', 'The expiry is not a date, or later than the year 9999.');
    else if (expiresAt <= now) fault(['expires_at'], 'in_the_past', 'The expiry must be in the future.');
  }
  if (rateLimit !== undefined && rateLimit !== null) {
    const message = rateFault(rateLimit);
    if (message !== null) fault(['rate_limit'], 'invalid_rate', message);
  }
  const message = quota === undefined || quota === null ? null : quotaFault(quota);
  if (message !== null) fault(['quota'], 'invalid_quota', message);
  if (graceSeconds !== undefined && !(Number.isInteger(graceSeconds) && graceSeconds >= 0 && graceSeconds <= GRACE_SECONDS_MAX)) {
    fault(['grace_seconds'], 'out_of_range', `The grace is 0 to ${GRACE_SECONDS_MAX} whole seconds.`);
  }
  return errors;
}

type Fault = (location: readonly (string | number)[], code: string, message: string) => void;

function nameFaults(name: unknown, fault: Fault): void {
  // Code points, as the column counts them.
  const length = typeof name === 'string' ? Array.from(name.trim()).length : 0;
  if (length < 1 || length > NAME_LENGTH_MAX) fault(['name'], 'invalid_name', `The name is 1 to ${NAME_LENGTH_MAX} characters.`);
  else if (hasHiddenCharacters(name as string))
    fault(
      ['name'],
      'invalid_name',
      'The name must not contain control characters, or characters that change the direction of text or are not seen.',
    );
  // It is stored, listed and told to others: a key that was pasted into the wrong field would be out.
  else if (withoutKeys(name as string) !== name) fault(['name'], 'invalid_name', 'The name must not contain an API key.');
}

function scopeFaults(scopes: unknown, fault: Fault): void {
  if (!Array.isArray(scopes)) return fault(['scopes'], 'invalid_scopes', 'The scopes are a list of strings.');
  if (scopes.length > SCOPES_MAX) return fault(['scopes'], 'too_many', `A key has at most ${SCOPES_MAX} scopes.`);
  for (const [index, scope] of scopes.entries()) {
    if (isScope(scope)) continue;
    fault(['scopes', index], 'invalid_scope', 'A scope is "*", "<resource>:*" or "<resource>:<action>" of a-z, 0-9, "_", "." and "-".');
  }
}
