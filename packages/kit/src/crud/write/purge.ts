import { CONFLICT_RETRIES } from '../../db/conflict-retries.ts';
import type { App } from '../../app/module.ts';
import type { Database, Db } from '../../db/db.ts';
import { constraintViolation } from '../../db/constraint-violation.ts';
import { quoteName } from '../../db/names.ts';
import { policiesOf } from '../policy/policies.ts';
import type { Policy } from '../policy/policy.ts';
import { inList, RowStatements } from './row-statements.ts';
import type { SoftDelete } from '../policy/soft-delete.ts';

export interface PurgeReport {
  /** Rows of the model itself. */
  readonly removed: number;
  /** Rows that went with them. */
  readonly related: number;
  /** Deleted long enough ago, but other rows still refer to them. */
  readonly kept: number;
}

/** Rows per transaction: short ones, so that a purge never holds up the application. */
const BATCH = 500;

/** The resources of an app that delete softly, by the name of their model. */
export function softDeletedModels(app: Pick<App, 'controllers' | 'resources'>): ReadonlyMap<string, Policy> {
  const policies = [...policiesOf(app).all()].filter(({ softDelete }) => softDelete !== undefined);
  return new Map(policies.map((policy) => [policy.model.name, policy]));
}

/** Permanently deletes rows that were soft-deleted before a timestamp, with the deleted rows of their cascade. */
export async function purgeDeleted(db: Database, policy: Policy, before: Date): Promise<PurgeReport> {
  const report = { removed: 0, related: 0, kept: 0 };
  const { statements, key } = policy;
  const deletedAt = statements.column((policy.softDelete as SoftDelete).deletedAt);
  const name = quoteName(key.name);
  for (let last: unknown; ;) {
    const parameters: unknown[] = [deletedAt.encode(before)];
    const after = last === undefined ? '' : ` and ${name} > $${parameters.push(key.encode(last))}`;
    const text = `select ${name} as key from ${statements.table} where ${quoteName(deletedAt.name)} < $1${after} order by ${name} limit ${BATCH}`;
    const keys = (await db.query<{ key: unknown }>(text, parameters)).map((row) => row.key);
    if (keys.length === 0) return report;
    last = keys.at(-1);
    await purgeKeys(db, policy, keys, before, report);
  }
}

async function purgeKeys(
  db: Database,
  policy: Policy,
  keys: readonly unknown[],
  before: Date,
  report: { removed: number; related: number; kept: number },
): Promise<void> {
  try {
    const done = await db.transaction(async (tx) => {
      const still = await lockDeleted(tx, policy, keys, before);
      return { removed: still.length, related: still.length === 0 ? 0 : await removeRows(tx, policy, still) };
    }, CONFLICT_RETRIES);
    report.related += done.related;
    report.removed += done.removed;
  } catch (error) {
    if (constraintViolation(error) === undefined) throw error;
    if (keys.length === 1) report.kept += 1;
    else for (const key of keys) await purgeKeys(db, policy, [key], before, report);
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

/** The rows below first. Returns how many of those there were. */
async function removeRows(tx: Db, policy: Policy, keys: readonly unknown[]): Promise<number> {
  let related = 0;
  for (const name of policy.softDelete?.cascade ?? []) {
    const edge = policy.edge(name);
    const target = edge?.target;
    if (edge === undefined || target?.softDelete === undefined) continue;
    const { statements, key } = target;
    const parameters: unknown[] = [];
    const below = inList(tx, quoteName(edge.column), statements.column(edge.column), keys, parameters);
    const text = `select ${quoteName(key.name)} as key from ${statements.table} where ${below} and ${quoteName(target.softDelete.deletedAt)} is not null`;
    const children = (await tx.query<{ key: unknown }>(text, parameters)).map((row) => row.key);
    if (children.length > 0) related += children.length + (await removeRows(tx, target, children));
  }
  await new RowStatements(policy).deleteMany(tx, keys);
  return related;
}
