import type { User } from '../../auth/principal.ts';
import type { Db } from '../../db/db.ts';
import type { Dialect } from '../../db/dialect.ts';
import type { Model } from '../../db/model.ts';
import { quoteName, quoteText } from '../../db/names.ts';
import type { Columns } from '../../db/rows.ts';
import { whereSql } from '../../db/where/where-sql.ts';
import type { Where } from '../../db/where/where.ts';
import type { KnownAsker } from './asker.ts';
import { knownAsker } from './caller-subjects.ts';
import { declarationOf, grantsState } from './grants-state.ts';
import { GrantSql, type Values } from './grant-sql.ts';
import { levelsOf } from './object-chain.ts';
import type { ObjectActions } from './object-actions.ts';

/**
 * The objects that an asker may do the action to, as a condition on their table: one EXISTS over the grants on the row and on its parents,
 * each found by an index. The owner is not part of it: see `ownedOrGranted`.
 */
export function grantedTo(dialect: Dialect, declaration: ObjectActions, asker: KnownAsker, action: string): Where | boolean {
  const { user } = asker;
  if (user !== null && user.is_active && user.is_superuser) return true;
  if (user !== null && !user.is_active) return false;
  const plan = existsPlan(dialect, declaration, asker, action);
  return plan === undefined ? false : (whereSql(plan.text, plan.values) as Where);
}

interface WrittenPlan {
  readonly text: string;
  readonly values: Values;
}

/** Texts by declaration: what of an asker changes them is in the key, everything else is a value. */
const plans = new WeakMap<ObjectActions, Map<string, WrittenPlan>>();

export function existsPlan(
  dialect: Dialect,
  declaration: ObjectActions,
  asker: KnownAsker,
  action: string,
): { readonly text: string; readonly values: unknown[] } | undefined {
  let known = plans.get(declaration);
  if (known === undefined) plans.set(declaration, (known = new Map()));
  const key = `${dialect} ${action} ${asker.user === null} ${asker.tenant === undefined}`;
  let plan = known.get(key);
  if (plan === undefined) {
    const sql = new GrantSql(dialect, asker);
    const branches = inheritance(sql, declaration, action);
    if (branches.length === 0) return undefined;
    plan = { text: `exists (${branches.join(' union all ')})`, values: sql.values };
    // An owner's column that cannot hold this user's id makes a text of its own.
    if (isUsual(declaration, asker)) known.set(key, plan);
    return { text: plan.text, values: sql.values.list };
  }
  if (isUsual(declaration, asker)) return { text: plan.text, values: plan.values.for(asker) };
  const sql = new GrantSql(dialect, asker);
  return { text: `exists (${inheritance(sql, declaration, action).join(' union all ')})`, values: sql.values.list };
}

/** Whether the owners' columns of the object and its parents can hold the id of the asker. */
function isUsual(declaration: ObjectActions, asker: KnownAsker): boolean {
  if (asker.user === null) return true;
  const owned = levelsOf(declaration, declaration.depth).filter(({ owner }) => owner !== undefined);
  return owned.every((each) => new GrantSql('sqlite', asker).isOwned(each, 't') !== undefined);
}

/** One SELECT per level: the row itself, its parent, the parent's parent. Parents that are deleted give nothing, and nothing passes through them. */
function inheritance(sql: GrantSql, declaration: ObjectActions, action: string): string[] {
  const branches: string[] = [];
  if (declaration.actions.has(action)) {
    const id = sql.keyText(declaration, `this.${declaration.key.name}`);
    branches.push(`select 1 from grants g where g.object_id = ${id} and ${sql.grantsOf(declaration, action)}`);
  }
  const tables: string[] = [];
  const joins: string[] = [];
  let { parent } = declaration;
  let reference = `this.${declaration.through ?? ''}`;
  for (let level = 1; level <= declaration.depth && parent !== undefined; level += 1) {
    const alias = `p${level}`;
    const isParent = `${alias}.${quoteName(parent.key.name)} = ${reference}${sql.isUndeleted(parent, alias)}`;
    if (parent.actions.has(action)) {
      const onParent = `g.object_id = ${sql.keyText(parent, reference)} and g.object_deleted_at is null and ${sql.grantsOf(parent, action)}`;
      branches.push(`select 1 from ${[...tables, 'grants g'].join(', ')} where ${[...joins, onParent].join(' and ')}`);
      const owned = sql.isOwned(parent, alias);
      if (owned !== undefined)
        branches.push(
          `select 1 from ${[...tables, `${quoteName(parent.type)} ${alias}`].join(', ')} where ${[...joins, isParent, owned].join(' and ')}`,
        );
    }
    tables.push(`${quoteName(parent.type)} ${alias}`);
    joins.push(isParent);
    reference = `${alias}.${quoteName(parent.through ?? '')}`;
    ({ parent } = parent);
  }
  return branches;
}

/** Owner or grants, for statements outside CRUD. */
export function ownedOrGranted(dialect: Dialect, declaration: ObjectActions, asker: KnownAsker, action: string): Where | boolean {
  const granted = grantedTo(dialect, declaration, asker, action);
  const { owner } = declaration;
  if (typeof granted === 'boolean' && (granted || asker.user === null || !asker.user.is_active)) return granted;
  const sql = new GrantSql(dialect, asker);
  const owned = sql.isOwned(declaration, 'this');
  if (owner === undefined || owned === undefined || !declaration.actions.has(action)) return granted;
  // `this.` is followed by a bare name: whereSql finds columns of the row by it.
  const ownedWhere = whereSql(owned.replace(`this.${quoteName(owner)}`, `this.${owner}`), sql.values.list) as Where;
  return granted === false ? ownedWhere : ({ or: [ownedWhere, granted] } as Where);
}

/**
 * The rows that a user may do the action to, for queries by hand: `compileWhere(orders, where).append(dialect, 'o', parameters)` in SQL,
 * `whereExpression(db, orders, where)` in Kysely. The owner's rows and inherited grants are part of it.
 */
export async function grantedCondition<C extends Columns>(
  db: Db,
  user: User | null,
  model: Model<C>,
  action: string,
  tenant?: string | null,
): Promise<Where<C> | boolean> {
  const declaration = declarationOf(db, model);
  requireAction(declaration, action);
  const asker = await knownAsker(db, { user, tenant, now: grantsState.of(db).clock.now() });
  const { backend } = declaration;
  if (backend !== undefined)
    return (await backend.condition({ db, asker, declaration, permission: undefined }, action)) as Where<C> | boolean;
  return ownedOrGranted(db.dialect, declaration, asker, action) as Where<C> | boolean;
}

export function requireAction(declaration: ObjectActions, action: string): void {
  if (!declaration.actions.has(action))
    throw new Error(`"${declaration.type}" has no action ${quoteText(action)}. Known: ${[...declaration.actions].join(', ')}.`);
}
