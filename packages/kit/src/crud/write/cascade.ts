import type { Db } from '../../db/engine/db.ts';
import { quoteName } from '../../db/declare/names.ts';
import { crudErrors } from '../declare/errors.ts';
import { limits } from '../declare/limits.ts';
import type { Edge, Policy } from '../policy/policy.ts';
import { RowStatements } from './row-statements.ts';
import type { Item } from '../declare/item.ts';
import { noDeletion, type SoftDelete } from '../policy/soft-delete.ts';

/** One row that went along, or came back. */
export type CascadeListener = (policy: Policy, before: Item, after: Item) => Promise<void>;

/** How a cascade is made: what it needs of the writers of other tables. */
export interface CascadeOptions {
  /** What `updated_by` becomes. */
  readonly stamps: (policy: Policy) => Item;
  /** Whether anybody looks at the rows of this policy; if not, they are not read before they change. */
  readonly isWatched: (policy: Policy) => boolean;
  readonly changed: CascadeListener;
}

/**
 * Marks the rows below deleted ones, level by level: one UPDATE per relation. Rows that were deleted earlier keep their own deletion. It is
 * about data, not about who sees it: children are deleted even if the caller may not see them.
 */
export function cascadeDeletion(tx: Db, policy: Policy, root: Item, deletion: Item, options: CascadeOptions): Promise<void> {
  const isLive = ({ deletedAt }: SoftDelete) => `t0.${quoteName(deletedAt)} is null`;
  // Names of the columns are the same in every table; one without `deleted_by` leaves it out.
  const valuesOf = (target: Policy) => Object.fromEntries(Object.entries(deletion).filter(([name]) => target.statements.byName.has(name)));
  return new Cascade(tx, options, isLive, valuesOf).below(policy, [root]);
}

/** Restores the rows that went with this deletion, and no others. */
export function cascadeRestore(tx: Db, policy: Policy, root: Item, deletionId: string, options: CascadeOptions): Promise<void> {
  return new Cascade(tx, options, isOfDeletion(deletionId), ({ softDelete }) => noDeletion(softDelete as SoftDelete)).below(policy, [root]);
}

class Cascade {
  readonly #tx: Db;
  readonly #options: CascadeOptions;
  readonly #condition: (soft: SoftDelete) => string;
  readonly #values: (policy: Policy) => Item;
  #count = 0;

  constructor(tx: Db, options: CascadeOptions, condition: (soft: SoftDelete) => string, values: (policy: Policy) => Item) {
    this.#tx = tx;
    this.#options = options;
    this.#condition = condition;
    this.#values = values;
  }

  async below(policy: Policy, parents: readonly Item[]): Promise<void> {
    for (const name of policy.softDelete?.cascade ?? []) {
      const edge = policy.edge(name);
      const soft = edge?.target.softDelete;
      if (edge === undefined || soft === undefined) continue;
      const children = await this.#change(
        edge,
        soft,
        parents.map((row) => row[policy.key.name]),
      );
      if (children.length > 0) await this.below(edge.target, children);
    }
  }

  async #change({ target, column }: Edge, soft: SoftDelete, parents: readonly unknown[]): Promise<Item[]> {
    const statements = new RowStatements(target);
    const also = this.#condition(soft);
    const foreignKey = target.statements.column(column);
    const limit = limits.cascadeRows - this.#count + 1;
    // Read first, in the order of the keys: other writers lock in the same order, and a cascade that is too large changes nothing.
    const before = await statements.selectMany(this.#tx, undefined, foreignKey, parents, { also, limit });
    if (before.length === 0) return [];
    this.#count += before.length;
    if (this.#count > limits.cascadeRows)
      throw crudErrors.too_many_related({
        detail: `More than ${limits.cascadeRows} related rows would change with this one.`,
        extensions: { rows_max: limits.cascadeRows },
      });
    const keys = before.map((row) => row[target.key.name]);
    const values = { ...this.#values(target), ...this.#options.stamps(target) };
    const after = await statements.updateMany(this.#tx, target.key, keys, values);
    if (this.#options.isWatched(target)) {
      const byKey = new Map(after.map((row) => [String(row[target.key.name]), row]));
      for (const row of before) await this.#options.changed(target, row, byKey.get(String(row[target.key.name])) as Item);
    }
    return after;
  }
}

function isOfDeletion(id: string): (soft: SoftDelete) => string {
  return ({ deletionId }) => `t0.${quoteName(deletionId)} = '${checkedUuid(id)}'`;
}

/** It stands in the statement's text. */
function checkedUuid(text: string): string {
  if (!/^[0-9a-f-]{36}$/.test(text)) throw new Error('A deletion id is a UUID.');
  return text;
}

/** 409 when a row above this one is deleted: it comes back with that one, or not at all. */
export async function refuseBelowDeleted(tx: Db, policy: Policy, row: Item): Promise<void> {
  for (const { parent, column } of policy.cascadeParents()) {
    const { deletedAt } = parent.softDelete as SoftDelete;
    const value = row[column];
    if (value === null || value === undefined) continue;
    const key = `t0.${quoteName(parent.key.name)}`;
    // Held until the end, as a reference is: a deletion of the parent waits, and then takes the row along.
    const lock = tx.dialect === 'postgres' ? ' for share of t0' : '';
    const text = `select t0.${quoteName(deletedAt)} is not null as is_deleted from ${parent.statements.table} t0 where ${key} = $1${lock}`;
    const [found] = await tx.query<{ readonly is_deleted: boolean | number }>(text, [parent.key.encode(value)]);
    if (found?.is_deleted && !(await returnsWith(tx, policy, row, { policy: parent, value })))
      throw crudErrors.deleted_with_parent({ extensions: { parent: parent.name } });
  }
}

interface RowAbove {
  readonly policy: Policy;
  /** Of its key. */
  readonly value: unknown;
}

/**
 * True when a restore of the row also restores the row above it: references can form a circle, or lead from a row to itself. Such rows have no
 * first one, and without this none of them could ever be restored. Climbs the rows of the same deletion, one statement per level.
 */
async function returnsWith(tx: Db, policy: Policy, row: Item, above: RowAbove): Promise<boolean> {
  const deletion = row[(policy.softDelete as SoftDelete).deletionId] as string | null;
  if (deletion === null) return false;
  const placeOf = (each: RowAbove) => `${each.policy.model.name} ${String(each.policy.key.encode(each.value))}`;
  const target = placeOf({ policy, value: row[policy.key.name] });
  const seen = new Set<string>();
  const open = [above];
  for (const each of open) {
    const place = placeOf(each);
    if (place === target) return true;
    if (seen.has(place)) continue;
    seen.add(place);
    const also = isOfDeletion(deletion)(each.policy.softDelete as SoftDelete);
    const [found] = await new RowStatements(each.policy).selectMany(tx, undefined, each.policy.key, [each.value], { also });
    for (const { parent, column } of found === undefined ? [] : each.policy.cascadeParents())
      if (found?.[column] !== null && found?.[column] !== undefined) open.push({ policy: parent, value: found[column] });
  }
  return false;
}
