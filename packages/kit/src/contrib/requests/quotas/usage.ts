import type { PeriodUsage } from '../../../app/declare/registry.ts';
import type { Db } from '../../../db/engine/db.ts';
import { readOptions, requireArguments } from '../../../options/read-options.ts';
import { aDate, queryable, text } from '../../../options/value-rule.ts';
import { usageOf } from './quotas.ts';

/** Exactly one of `key`, `owner` and `tenant`. */
export interface UsageQuestion {
  /** The id of an API key. */
  readonly key?: string;
  /** The id of a user. */
  readonly owner?: string;
  /** The id of a tenant. */
  readonly tenant?: string;
  /** A moment in the period. Default: now. */
  readonly at?: Date;
}

/**
 * What an API key, a user or a tenant with a quota used in the periods that a moment is in: exact, whatever the log leaves out. Empty where there was no
 * request.
 *
 * @example
 * ```ts
 * const [month] = await usage(db, { tenant: 'acme' }); // { period: 'month', from, until, used: 812, quota: 10000 }
 * ```
 */
export async function usage(db: Db, question: UsageQuestion): Promise<readonly PeriodUsage[]> {
  const { key, owner, tenant, at } = readOptions('usage()', question, { key: text, owner: text, tenant: text, at: aDate });
  requireArguments('usage()', { db }, { db: queryable });
  const asked = [
    ['key', key],
    ['owner', owner],
    ['tenant', tenant],
  ] as const;
  const [whose, another] = asked.filter(([, id]) => id !== undefined);
  if (whose === undefined || another !== undefined) throw new TypeError('usage(): name one of `key`, `owner` and `tenant`.');
  return usageOf(db, whose[0], whose[1] as string, at);
}
