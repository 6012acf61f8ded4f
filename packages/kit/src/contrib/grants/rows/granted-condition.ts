import { askedBackend } from '../declare/grant-backend.ts';
import type { Db } from '../../../db/engine/db.ts';
import type { Dialect } from '../../../db/dialect.ts';
import { identityValue } from '../../../db/sql/identity-value.ts';
import { statementsOf } from '../../../db/sql/model-statements.ts';
import type { Model } from '../../../db/declare/model.ts';
import { quoteName, quoteText } from '../../../db/declare/names.ts';
import type { Columns } from '../../../db/declare/rows.ts';
import { placeSql, whereSql } from '../../../db/sql/where/where-sql.ts';
import type { Where } from '../../../db/sql/where/where.ts';
import { type Asker, type KnownAsker, requireAsker } from '../declare/asker.ts';
import { isExempt, knownAsker } from '../caller/caller-subjects.ts';
import { declarationOf } from '../declare/grants-state.ts';
import { GrantSql, identityEncoder, type Values } from './grant-sql.ts';
import { levelsOf } from '../declare/object-chain.ts';
import type { ObjectActions } from '../declare/object-actions.ts';

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

/**
 * Texts by declaration and action: what of an asker changes them is in the number, everything else is a value. Writing one takes 22.9 µs,
 * looking it up 1.3; the whole check of an object on SQLite is 12.6 µs (`grants-list`).
 */
const plans = new WeakMap<ObjectActions, Map<string, Map<number, WrittenPlan>>>();

export function existsPlan(
  dialect: Dialect,
  declaration: ObjectActions,
  asker: KnownAsker,
  action: string,
): { readonly text: string; readonly values: unknown[] } | undefined {
  return planFor('exists', dialect, declaration, asker, action);
}

/**
 * One statement that decides about one object: `$1` is its key. A grant on the object itself is found by one index, without reading its row;
 * parents are looked at after that, from the row as it is stored.
 */
export function decisionPlan(
  dialect: Dialect,
  declaration: ObjectActions,
  asker: KnownAsker,
  action: string,
): { readonly text: string; readonly values: unknown[] } | undefined {
  return planFor('decision', dialect, declaration, asker, action);
}

/**
 * One statement that decides about an action and `view` of one object, whose key is `$1`: `asked` and `view` are what grants give, `owner` and
 * `tenant` what the row stores. No row: there is no such object.
 */
export function rowPlan(
  dialect: Dialect,
  declaration: ObjectActions,
  asker: KnownAsker,
  action: string,
): { readonly text: string; readonly values: unknown[] } | undefined {
  return planFor('row', dialect, declaration, asker, action);
}

const KINDS = { decision: 0, exists: 1, row: 2 } as const;
type PlanKind = keyof typeof KINDS;

function planFor(
  kind: PlanKind,
  dialect: Dialect,
  declaration: ObjectActions,
  asker: KnownAsker,
  action: string,
): { readonly text: string; readonly values: unknown[] } | undefined {
  // An owner's or tenant's column that cannot hold the id makes a text of its own.
  if (!isUsual(declaration, asker)) {
    const plan = writePlan(kind, new GrantSql(dialect, asker), declaration, action);
    return plan === undefined ? undefined : { text: plan.text, values: plan.values.list };
  }
  let byAction = plans.get(declaration);
  if (byAction === undefined) plans.set(declaration, (byAction = new Map()));
  let known = byAction.get(action);
  if (known === undefined) {
    if (!isDeclared(declaration, action)) return undefined;
    byAction.set(action, (known = new Map()));
  }
  const shape = shapeOf(kind, dialect, asker);
  let plan = known.get(shape);
  if (plan === undefined) {
    plan = writePlan(kind, new GrantSql(dialect, asker), declaration, action);
    if (plan === undefined) return undefined;
    known.set(shape, plan);
  }
  return { text: plan.text, values: plan.values.for(asker) };
}

/** Actions that the object or a parent has: names of others, which a caller may make up, are not kept. */
function isDeclared(declaration: ObjectActions, action: string): boolean {
  return levelsOf(declaration, declaration.depth).some(({ actions }) => actions.has(action));
}

/** A number rather than a text: this runs for every object that is checked. */
function shapeOf(kind: PlanKind, dialect: Dialect, asker: KnownAsker): number {
  const { user, tenant } = asker;
  const flags = KINDS[kind] + (dialect === 'postgres' ? 4 : 0) + (user === null ? 8 : 0) + (tenant === null ? 16 : 0);
  return flags + 32 * (GrantSql.placesOf(dialect, asker) + 1);
}

function writePlan(kind: PlanKind, sql: GrantSql, declaration: ObjectActions, action: string): WrittenPlan | undefined {
  if (kind === 'row') return writeRowPlan(sql, declaration, action);
  const branches = inheritance(sql, declaration, action);
  if (branches.length === 0) return undefined;
  const { values } = sql;
  if (kind === 'exists')
    return { text: `exists (${branches.map(({ from, where }) => selectSql(from, where)).join(' union all ')})`, values };
  const [table, key] = [quoteName(declaration.type), `t0.${quoteName(declaration.key.name)}`];
  const parameter = `$1${sql.dialect === 'postgres' ? `::${sql.keyType(declaration)}` : ''}`;
  const selects = branches.map(({ from, where, isAbove }) =>
    isAbove
      ? placeSql(selectSql([`${table} t0`, ...from], [`${key} = this.${declaration.key.name}`, ...where]), 2, (column) =>
          column === declaration.key.name ? parameter : `t0.${quoteName(column)}`,
        )
      : placeSql(selectSql(from, where), 2, () => parameter),
  );
  return { text: `select 1 as allowed where exists (${selects.join(' union all ')})`, values };
}

function writeRowPlan(sql: GrantSql, declaration: ObjectActions, action: string): WrittenPlan {
  const { values } = sql;
  const { owner, tenant, key, type } = declaration;
  const given = (wanted: string): string => {
    const selects = inheritance(sql, declaration, wanted).map(({ from, where }) => selectSql(from, where));
    if (selects.length === 0) return '0';
    const exists = placeSql(selects.join(' union all '), 2, (column) => `t0.${quoteName(column)}`);
    return `case when exists (${exists}) then 1 else 0 end`;
  };
  const column = (name: string | undefined) => (name === undefined ? 'null' : `t0.${quoteName(name)}`);
  const parameter = `$1${sql.dialect === 'postgres' ? `::${sql.keyType(declaration)}` : ''}`;
  const text =
    `select ${column(owner)} as owner, ${column(tenant)} as tenant, ${given(action)} as asked, ${action === 'view' ? '0' : given('view')} as view ` +
    `from ${quoteName(type)} t0 where t0.${quoteName(key.name)} = ${parameter}`;
  return { text, values };
}

function selectSql(from: readonly string[], where: readonly string[]): string {
  return `select 1 from ${from.join(', ')} where ${where.join(' and ')}`;
}

type CanHold = (id: string) => boolean;

/** The columns of owners and tenants, of the object and its parents: read once, asked by every decision. */
const identityColumns = new WeakMap<ObjectActions, { readonly owners: readonly CanHold[]; readonly tenants: readonly CanHold[] }>();

/** Whether the columns of owners and tenants, of the object and its parents, can hold the ids of the asker. */
function isUsual(declaration: ObjectActions, { user, tenant }: KnownAsker): boolean {
  if (user === null) return true;
  let columns = identityColumns.get(declaration);
  if (columns === undefined) {
    const levels = levelsOf(declaration, declaration.depth);
    columns = {
      owners: levels.flatMap((each) => canHold(each, each.owner)),
      tenants: levels.flatMap((each) => canHold(each, each.tenant)),
    };
    identityColumns.set(declaration, columns);
  }
  const { owners, tenants } = columns;
  if (!user.is_active) return owners.length === 0;
  return owners.every((holds) => holds(user.id)) && (tenant === null || tenants.every((holds) => holds(tenant)));
}

function canHold({ model }: ObjectActions, column: string | undefined): CanHold[] {
  if (column === undefined) return [];
  const encode = identityEncoder(model, column);
  return [(id) => encode(id) !== undefined];
}

/** A SELECT that finds a grant: on the object, or on one of its parents. */
interface Branch {
  readonly from: readonly string[];
  readonly where: readonly string[];
  readonly isAbove: boolean;
}

/** One SELECT per level: the row itself, its parent, the parent's parent. Parents that are deleted give nothing, and nothing passes through them. */
function inheritance(sql: GrantSql, declaration: ObjectActions, action: string): Branch[] {
  const branches: Branch[] = [];
  if (declaration.actions.has(action)) {
    const id = sql.keyText(declaration, `this.${declaration.key.name}`);
    branches.push({ from: ['grants g'], where: [`g.object_id = ${id}`, sql.grantsOf(declaration, action)], isAbove: false });
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
      branches.push({ from: [...tables, 'grants g'], where: [...joins, onParent], isAbove: true });
      const owned = sql.isOwned(parent, alias);
      if (owned !== undefined)
        branches.push({
          from: [...tables, `${quoteName(parent.type)} ${alias}`],
          where: [...joins, isParent + sql.isRowOfTenant(parent, alias), owned],
          isAbove: true,
        });
    }
    tables.push(`${quoteName(parent.type)} ${alias}`);
    joins.push(isParent);
    reference = `${alias}.${quoteName(parent.through ?? '')}`;
    ({ parent } = parent);
  }
  return branches;
}

/** Owner or grants, in the asker's tenant: for statements outside CRUD, which adds the tenant itself. Superusers stay in their tenant, too. */
export async function ownedOrGranted(
  dialect: Dialect,
  declaration: ObjectActions,
  asker: KnownAsker,
  action: string,
): Promise<Where | boolean> {
  const isEvery = declaration.actions.has(action) && (await isExempt(declaration, asker));
  return inTenant(declaration, asker, isEvery || ownedOrGrantedAnywhere(dialect, declaration, asker, action));
}

/** A condition, and that rows are of the asker's tenant. */
export function inTenant({ model, tenant: column }: ObjectActions, { tenant }: KnownAsker, where: Where | boolean): Where | boolean {
  if (column === undefined || where === false) return where;
  const value = tenant === null ? null : identityValue(statementsOf(model).column(column), tenant);
  // No row has a tenant that its column cannot hold.
  if (value === undefined) return false;
  const ofTenant = { [column]: value } as Where;
  return where === true ? ofTenant : ({ and: [ofTenant, where] } as Where);
}

function ownedOrGrantedAnywhere(dialect: Dialect, declaration: ObjectActions, asker: KnownAsker, action: string): Where | boolean {
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
 * The rows that the asker may do the action to, in its tenant, for hand-written queries: `compileWhere(orders, where).append(dialect, 'o', parameters)` in SQL,
 * `whereExpression(db, orders, where)` in Kysely. The owner's rows and inherited grants are part of it.
 */
export async function grantedCondition<C extends Columns>(
  db: Db,
  asker: Asker,
  model: Model<C>,
  action: string,
): Promise<Where<C> | boolean> {
  requireAsker('grantedCondition()', asker);
  const declaration = declarationOf(db, model);
  requireAction(declaration, action);
  const known = await knownAsker(db, asker);
  const { backend } = declaration;
  const where =
    backend === undefined
      ? await ownedOrGranted(db.dialect, declaration, known, action)
      : inTenant(
          declaration,
          known,
          await askedBackend.condition(backend, { db, asker: known, declaration, permission: undefined }, action),
        );
  return where as Where<C> | boolean;
}

export function requireAction(declaration: ObjectActions, action: string): void {
  if (!declaration.actions.has(action))
    throw new Error(`"${declaration.type}" has no action ${quoteText(action)}. Known: ${[...declaration.actions].join(', ')}.`);
}
