import { resultCode } from '../db/engine/sqlite/result-code.ts';
import { isKitError } from '../errors/kit-error.ts';

/**
 * Classes of SQLSTATE that mean a value of the statement: 21 cardinality, 22 data exception, 23 constraint, 44 check option, 54 program limit,
 * P0001 raised by a trigger. Everything else (connections, locks, disks, missing tables, shutdown) is about the database.
 */
const POSTGRES_VALUE = /^(?:2[123]|44|54)...$|^P0001$/;
/** SQLITE_TOOBIG, SQLITE_CONSTRAINT (triggers included), SQLITE_MISMATCH and SQLITE_RANGE. */
const SQLITE_VALUE: ReadonlySet<number | undefined> = new Set([18, 19, 20, 25]);

/** True when a value of the statement was rejected: the same statement fails every time, however often it is repeated. */
export function isValueRejected(error: unknown): boolean {
  if (isKitError(error, 'value_not_storable')) return true;
  const code = (error as { readonly code?: unknown } | null)?.code;
  // Thrown while the parameters were built: an invalid date, a string that is too long.
  if (code === undefined && (error instanceof RangeError || error instanceof TypeError)) return true;
  return SQLITE_VALUE.has(resultCode(error)) || (typeof code === 'string' && POSTGRES_VALUE.test(code));
}

/**
 * Stores items with as few calls as possible. When a value is rejected, the items are halved until the culprit is alone; it goes to `reject`,
 * and everything else is stored. Other errors are thrown: what was stored before them must not be stored again.
 */
export async function storeInParts<T>(
  items: readonly T[],
  store: (items: readonly T[]) => Promise<void>,
  reject: (item: T, error: unknown) => Promise<void>,
): Promise<void> {
  const [first] = items;
  if (first === undefined) return;
  try {
    await store(items);
  } catch (error) {
    if (!isValueRejected(error)) throw error;
    if (items.length === 1) return reject(first, error);
    const middle = Math.ceil(items.length / 2);
    await storeInParts(items.slice(0, middle), store, reject);
    await storeInParts(items.slice(middle), store, reject);
  }
}
