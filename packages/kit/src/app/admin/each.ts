import { isKitError } from '../../errors/kit-error.ts';
import type { AdminContext } from './declaration.ts';
import type { AdminResult } from './shapes.ts';
import { requireArguments } from '../../options/read-options.ts';
import { anObject, aList, aFunction } from '../../options/value-rule.ts';
import { groupDigits } from './group-digits.ts';

/** What became of a selection. */
export interface EachResult {
  /** How many records the work was done for. */
  readonly done: number;
  /** The records that it could not be done for. */
  readonly failures: NonNullable<AdminResult['failures']>;
}

/** Does the work for each id in turn; what fails for one is reported in `failures` and does not stop the rest. */
export async function adminEach(
  context: Pick<AdminContext, 'log' | 'requestId' | 'savepoint'>,
  ids: readonly string[],
  work: (id: string) => Promise<void>,
): Promise<EachResult> {
  requireArguments('adminEach()', { context, ids, work }, { context: anObject, ids: aList, work: aFunction });
  const { log, requestId, savepoint = (each) => each() } = context;
  const failures: { id: string; message: string }[] = [];
  for (const id of ids) {
    try {
      await savepoint(() => work(id));
    } catch (error) {
      if (!isKitError(error) || error.status >= 500) log.error({ err: error, record: id }, 'admin: an action failed for a record');
      const isOurs = isKitError(error) && error.status < 500;
      failures.push({ id, message: isOurs ? error.detail : `The server failed; the log has details under request id ${requestId}.` });
    }
  }
  return { done: ids.length - failures.length, failures };
}

/** `1 delivery`, `1,204 deliveries`. */
export function adminCount(count: number, [one, many]: readonly [string, string]): string {
  return `${groupDigits(count)} ${count === 1 ? one : many}`;
}

/** `3 keys revoked; 1 failed.` */
export function adminDone(result: EachResult, words: readonly [string, string], participle: string): AdminResult {
  requireArguments('adminDone()', { result, words }, { result: anObject, words: aList });
  const { done, failures } = result;
  const did = `${adminCount(done, words)} ${participle}`;
  return failures.length === 0 ? { message: `${did}.` } : { message: `${did}; ${failures.length} failed.`, failures };
}
