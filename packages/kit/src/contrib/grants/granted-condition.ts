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
import { GrantSql } from './grant-sql.ts';
import type { ObjectActions } from './object-actions.ts';

/**
 * The objects that an asker may do the action to, as a condition on their table: one EXISTS over the grants on the row and on its parents,
 * each found by an index. The owner is not part of it: see `ownedOrGranted`.
 */
export function grantedTo(dialect: Dialect, declaration: ObjectActions, asker: KnownAsker, action: string): Where | boolean {
  const { user } = asker;
  if (user !== null && user.is_active && user.is_superuser) return true;
  if (user !== null && !user.is_active) return false;
  const sql = new GrantSql(dialect, asker);
  const branches = inheritance(sql, declaration, action);
  if (branches.length === 0) return false;
  return whereSql(`exists (${branches.join(' union all ')})`, sql.values.list) as Where;
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
