import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import type { App } from '../../app/declare/module.ts';
import type { DeclaredParts } from '../../http/compile/declared-parts.ts';
import type { Database, Db } from '../../db/engine/db.ts';
import { exceptHeldSql, heldSql, type HeldTables } from '../../db/subjects/held-rows.ts';
import type { Subject } from '../../db/subjects/subject.ts';
import { constraintViolation } from '../../db/engine/constraint-violation.ts';
import { quoteName } from '../../db/declare/names.ts';
import { policiesOf } from '../policy/policies.ts';
import type { Edge, Policy } from '../policy/policy.ts';
import { inList } from '../policy/in-list.ts';
import { RowStatements } from './row-statements.ts';
import type { SoftDelete } from '../policy/soft-delete.ts';

export interface PurgeReport {
  /** Rows of the model itself. */
  readonly removed: number;
  /** Rows that went with them. */
  readonly related: number;
  /** Deleted long enough ago, but other rows still refer to them, or a legal hold keeps a row that would go with them. */
  readonly kept: number;
}

/** Rows per transaction: short ones, so that a purge never holds up the application. */
const BATCH = 500;

/** The resources of an app that delete softly, by the name of their model. */
export function softDeletedModels(app: Pick<App, keyof DeclaredParts>): ReadonlyMap<string, Policy> {
  const policies = [...policiesOf(app).serving()].filter(({ softDelete }) => softDelete !== undefined);
  return new Map(policies.map((policy) => [policy.model.name, policy]));
}

/** Legal holds, which may be set meanwhile, and whose the rows of the database are. */
export interface Held {
  holds(): Promise<readonly Subject[]>;
  readonly tables: HeldTables;
}

const NOBODY: Held = { holds: () => Promise.resolve([]), tables: { models: [], whose: () => ({}) } };

/** A row that would go along is under a legal hold. */
class RowIsHeld extends Error {}

/** Permanently deletes rows that were soft-deleted before a timestamp, with the deleted rows of their cascade. Rows under a legal hold stay. */
export async function purgeDeleted(db: Database, policy: Policy, before: Date, held: Held = NOBODY): Promise<PurgeReport> {
  const report = { removed: 0, related: 0, kept: 0 };
  const { statements, key } = policy;
  const deletedAt = statements.column((policy.softDelete as SoftDelete).deletedAt);
  const name = quoteName(key.name);
  for (let last: unknown; ;) {
    const parameters: unknown[] = [deletedAt.encode(before)];
    const after = last === undefined ? '' : ` and ${name} > $${parameters.push(key.encode(last))}`;
    const kept = exceptHeldSql(await held.holds(), held.tables, policy.model, 'r', parameters);
    const text = `select ${name} as key from ${statements.table} r where ${quoteName(deletedAt.name)} < $1${after}${kept} order by ${name} limit ${BATCH}`;
    const keys = (await db.query<{ key: unknown }>(text, parameters)).map((row) => row.key);
    if (keys.length === 0) return report;
    last = keys.at(-1);
    await purgeKeys(db, policy, keys, { before, held, report });
  }
}

interface Purge {
  readonly before: Date;
  readonly held: Held;
  readonly report: { removed: number; related: number; kept: number };
}

async function purgeKeys(db: Database, policy: Policy, keys: readonly unknown[], purge: Purge): Promise<void> {
  const { before, held, report } = purge;
  try {
    const holds = await held.holds();
    const done = await db.transaction(async (tx) => {
      const still = await lockDeleted(tx, policy, keys, before);
      return {
        removed: still.length,
        related: still.length === 0 ? 0 : await removeRows(tx, policy, still, { holds, tables: held.tables }),
      };
    }, CONFLICT_RETRIES);
    report.related += done.related;
    report.removed += done.removed;
  } catch (error) {
    if (!(error instanceof RowIsHeld) && constraintViolation(error) === undefined) throw error;
    if (keys.length === 1) report.kept += 1;
    else for (const key of keys) await purgeKeys(db, policy, [key], purge);
  }
}

/** Rows that were restored since they were found are left alone; the others cannot be restored until the transaction ends. */
async function lockDeleted(tx: Db, { statements, key, softDelete }: Policy, keys: readonly unknown[], before: Date): Promise<unknown[]> {
  const deletedAt = statements.column((softDelete as SoftDelete).deletedAt);
  const parameters: unknown[] = [deletedAt.encode(before)];
  const those = inList(tx, quoteName(key.name), key, keys, parameters);
  const lock = tx.dialect === 'postgres' ? ' for update' : '';
  const text = `select ${quoteName(key.name)} as key from ${statements.table} where ${quoteName(deletedAt.name)} < $1 and ${those} order by ${quoteName(key.name)}${lock}`;
  return (await tx.query<{ key: unknown }>(text, parameters, { replanned: true })).map((row) => row.key);
}

type KeysByPolicy = Map<Policy, Map<string, unknown>>;

/** Rows with their cascade, children first. Returns how many rows there were besides those of `keys`. */
async function removeRows(tx: Db, policy: Policy, keys: readonly unknown[], held: HoldsNow): Promise<number> {
  const found: KeysByPolicy = new Map();
  await collect(tx, policy, keys, found);
  for (const [each, rows] of found) await refuseHeld(tx, each, [...rows.values()], held);
  let related = -keys.length;
  for (const each of childrenFirst(policy)) {
    const rows = [...(found.get(each)?.values() ?? [])];
    if (rows.length > 0) await new RowStatements(each).deleteMany(tx, each.key, rows);
    related += rows.length;
  }
  return related;
}

interface HoldsNow {
  readonly holds: readonly Subject[];
  readonly tables: HeldTables;
}

/** Throws where a legal hold keeps one of the rows, or one that the database would delete with them. */
async function refuseHeld(
  tx: Db,
  { statements, key, model }: Policy,
  keys: readonly unknown[],
  { holds, tables }: HoldsNow,
): Promise<void> {
  const parameters: unknown[] = [];
  const held = heldSql(holds, tables, model, 'r', parameters);
  if (held === undefined || keys.length === 0) return;
  const those = inList(tx, `r.${quoteName(key.name)}`, key, keys, parameters);
  const found = await tx.query(`select 1 as found from ${statements.table} r where ${those} and ${held} limit 1`, parameters);
  if (found.length > 0) throw new RowIsHeld();
}

/** Adds the keys of deleted rows below these ones. Each row is visited once: references within a table can form a tree or a circle. */
async function collect(tx: Db, policy: Policy, keys: readonly unknown[], found: KeysByPolicy): Promise<void> {
  const known = found.get(policy) ?? new Map<string, unknown>();
  found.set(policy, known);
  const added = keys.filter((key) => !known.has(String(key)));
  for (const key of added) known.set(String(key), key);
  if (added.length === 0) return;
  for (const { target, column } of cascadeOf(policy)) {
    const { statements, key, softDelete } = target;
    const parameters: unknown[] = [];
    const below = inList(tx, quoteName(column), statements.column(column), added, parameters);
    const deletedAt = quoteName((softDelete as SoftDelete).deletedAt);
    const text = `select ${quoteName(key.name)} as key from ${statements.table} where ${below} and ${deletedAt} is not null`;
    const children = (await tx.query<{ key: unknown }>(text, parameters)).map((row) => row.key);
    await collect(tx, target, children, found);
  }
}

function cascadeOf(policy: Policy): Edge[] {
  return (policy.softDelete?.cascade ?? []).flatMap((name) => {
    const edge = policy.edge(name);
    return edge?.target.softDelete === undefined ? [] : [edge];
  });
}

/** The tables of a cascade, each after those whose rows refer to it. */
function childrenFirst(policy: Policy, order = new Set<Policy>(), visited = new Set<Policy>()): Set<Policy> {
  if (visited.has(policy)) return order;
  visited.add(policy);
  for (const { target } of cascadeOf(policy)) childrenFirst(target, order, visited);
  return order.add(policy);
}
