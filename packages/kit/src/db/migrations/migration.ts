import { createHash } from 'node:crypto';
import { ONLINE_ONLY } from './online-steps.ts';
import type { Operation } from './operation.ts';
import { readOptions, requireArguments } from '../../options/read-options.ts';
import { aList, filledText, flag, listOf } from '../../options/value-rule.ts';
import { sortedMembers } from '../values/canonical-json.ts';

export interface Migration {
  readonly name: string;
  readonly operations: readonly Operation[];
  /** Migrations of other modules that must have run: `accounts/0001_initial`. */
  readonly after: readonly string[];
  /** Back-fills of its module that must be finished: `0012_full_name`. */
  readonly backfills: readonly string[];
  /** On PostgreSQL its one operation runs in several short transactions, while the app reads and writes. */
  readonly online: boolean;
  /** What the history remembers, to notice that a released migration was edited. */
  readonly checksum: string;
}

const NAME = /^\d{4}_[a-z0-9_]+$/;

/**
 * `migration('0002_add_total', [addColumn('orders', 'total', t.decimal(12, 2).dbDefault('0'))])`
 *
 * @example
 * ```ts
 * export const addTotal = migration('0002_add_total', [addColumn('orders', 'total', t.decimal(12, 2).dbDefault('0'))]);
 * ```
 */
export function migration(
  name: string,
  operations: readonly (Operation | readonly Operation[])[],
  options: {
    /** Migrations of other modules that must have run: `accounts/0001_initial`. */
    readonly after?: readonly string[];
    /** Back-fills of the module that must be finished before it runs: `0012_full_name`. */
    readonly backfills?: readonly string[];
    /**
     * For large tables on PostgreSQL: one operation in a form that does not stop reads and writes (a concurrent index, a constraint that is validated
     * later), in several transactions. A run that was killed goes on. SQLite ignores it.
     */
    readonly online?: boolean;
  } = {},
): Migration {
  if (!NAME.test(name)) throw new Error(`Migration "${name}": names are four digits, an underscore and snake_case, like 0001_initial.`);
  requireArguments(`migration("${name}")`, { operations }, { operations: aList });
  readOptions(`migration("${name}")`, options, { after: listOf(filledText), backfills: listOf(filledText), online: flag });
  const flat = operations.flat();
  if (options.online === true && flat.length !== 1)
    throw new Error(`Migration "${name}": ${ONLINE_ONLY}; it has ${flat.length} operations.`);
  return Object.freeze({
    name,
    operations: Object.freeze(flat),
    after: Object.freeze([...(options.after ?? [])]),
    backfills: Object.freeze([...(options.backfills ?? [])]),
    online: options.online === true,
    checksum: checksumOf(flat),
  });
}

/** JSON leaves functions (`code`) out: their text differs between source and build. */
function checksumOf(operations: readonly Operation[]): string {
  return createHash('sha256').update(JSON.stringify(operations, sortedMembers)).digest('hex');
}
