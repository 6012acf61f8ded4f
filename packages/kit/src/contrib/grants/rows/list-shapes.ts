import type { AccessNarrowing, AccessPage } from '../../../crud/declare/row-access.ts';
import type { Db } from '../../../db/engine/db.ts';
import { quoteName } from '../../../db/declare/names.ts';
import { whereSql } from '../../../db/sql/where/where-sql.ts';
import type { Where } from '../../../db/sql/where/where.ts';
import type { KnownAsker } from '../declare/asker.ts';
import { subjectsOf } from '../caller/caller-subjects.ts';
import { GrantSql } from './grant-sql.ts';
import type { ObjectActions } from '../declare/object-actions.ts';
import { keyText } from '../declare/object-chain.ts';

/**
 * How a page of granted rows is found. A test per row is only good where most rows pass it: the newest 50 rows of a caller who may see the
 * oldest of a million take a million tests. So:
 *
 * - merge: the newest of each subject, read off the index (subject, type, tenant, object id), and the newest of those. Its cost is the page
 *   times the subjects, however much the caller may see. For lists in the order of a time-ordered key.
 * - ids first: the ids of all the caller's objects, when there are few, and then the rows. For filters and other orders, and for reads of every
 *   row (exports, statistics, exact counts), where it costs what the caller may see instead of what there is.
 * - ordered probe: rows in the order of the list, each tested. When the caller may see many.
 *
 * The first two only narrow the statement: its own condition still decides about every row.
 */

/** The caller of a page, and which objects it lists. */
interface PageQuestion {
  readonly db: Db;
  readonly declaration: ObjectActions;
  readonly asker: KnownAsker;
}

const VIEW = 'view';
/** Measured with 5, 120 and 500 streams: 0.36, 8.9 and 40 ms. */
const STREAMS_MAX = 16;
/** More objects than this are not collected first: testing rows in order finds a page sooner. */
const IDS_MAX = 10_000;
/** The same for reads of every row. Above it, reading the whole table in order is cheaper than as many lookups. */
const WHOLE_IDS_MAX = 100_000;
/** Parents whose objects are collected one by one. */
const PARENTS_MAX = 1_000;

export async function narrowPage(question: PageQuestion, page: AccessPage): Promise<AccessNarrowing | undefined> {
  const { db, declaration, asker } = question;
  if (asker.user?.is_superuser === true) return undefined;
  const parents = await reachableParents(db, declaration, asker);
  if (parents === undefined) return undefined;
  const subjects = declaration.actions.has(VIEW) ? subjectsOf(declaration, asker) : [];
  const isOwner = declaration.owner !== undefined && asker.user !== null;
  const streams = subjects.length + parents.length + (isOwner ? 1 : 0);
  if (streams === 0) return { where: NOTHING, isComplete: true };
  // The newest objects are a page of no other list: in the order of a title they would be the wrong ones.
  const isMergeable = page.isCount === true || (page.byKey !== undefined && declaration.key.definition.kind === 'uuid');
  if (page.isWhole === true) return idsFirst(question, parents, WHOLE_IDS_MAX);
  if (!page.isFiltered && isMergeable && streams <= STREAMS_MAX) return merge(question, page, subjects, parents);
  return idsFirst(question, parents, IDS_MAX);
}

const NOTHING = whereSql('1 = 0') as Where;

/** The newest objects of each subject, and the newest among those. */
async function merge(
  { db, declaration, asker }: PageQuestion,
  { limit, byKey, isRetry = false }: AccessPage,
  subjects: readonly string[],
  parents: readonly unknown[],
): Promise<AccessNarrowing> {
  const sql = new GrantSql(db.dialect, asker);
  const { values } = sql;
  const direction = byKey?.descending === false ? 'asc' : 'desc';
  const sign = `${direction === 'asc' ? '>' : '<'}${byKey?.inclusive === true ? '=' : ''}`;
  const count = values.add(limit);
  const after = byKey?.after === undefined ? undefined : values.add(keyText(byKey.after));
  const key = `t.${quoteName(declaration.key.name)}`;
  const rowsAfter = after === undefined ? '' : ` and ${key} ${sign} ${sql.dialect === 'postgres' ? `${after}::uuid` : after}`;
  const rowsOf = (condition: string) =>
    `select ${sql.keyText(declaration, key)} as id from ${quoteName(declaration.type)} t where ${condition}${ofTenant(sql, declaration)}${sql.isUndeleted(declaration, 't')}${rowsAfter} ` +
    `order by ${key} ${direction} limit ${count}`;
  const isLive = () =>
    `${sql.inTenant(declaration)} and g.object_deleted_at is null and ${sql.isLive()} and ${sql.gives(declaration, VIEW)}`;
  // Rows that were removed by other means than CRUD leave their grants behind: looked at only after they shortened a page.
  const isThere = isRetry
    ? ` and exists (select 1 from ${quoteName(declaration.type)} t where ${key} = ${sql.textKey(declaration, 'g.object_id')}${sql.isUndeleted(declaration, 't')})`
    : '';
  const streams = subjects.map(
    (subject) =>
      `select g.object_id as id from grants g where g.subject = ${values.add(subject)} and g.object_type = '${declaration.type}'${isLive()}${isThere}` +
      `${after === undefined ? '' : ` and g.object_id ${sign} ${after}`} order by g.object_id ${direction} limit ${count}`,
  );
  const owned = sql.isOwned(declaration, 't');
  if (owned !== undefined) streams.push(rowsOf(owned));
  for (const parent of parents) streams.push(rowsOf(`t.${quoteName(declaration.through as string)} = ${values.add(parent)}`));
  const text = `select id from (${streams.map((stream, index) => `select id from (${stream}) s${index}`).join(' union all ')}) merged group by id order by id ${direction} limit ${count}`;
  const found = await db.query<{ id: string }>(text, values.list);
  return {
    where: idAmong(
      db,
      declaration,
      found.map(({ id }) => id),
    ),
    // A stream that was cut off has as many objects as the page.
    isComplete: found.length < limit,
  };
}

function idAmong(db: Db, declaration: ObjectActions, ids: readonly string[]): Where {
  if (ids.length === 0) return NOTHING;
  const sql = new GrantSql(db.dialect, ANONYMOUS);
  const key = `this.${declaration.key.name}`;
  if (db.dialect === 'postgres')
    return whereSql(
      sql.among(key, () => ids, sql.keyType(declaration)),
      sql.values.list,
    ) as Where;
  const value = sql.textKey(declaration, 'value');
  return whereSql(`${key} in (select ${value} from json_each($1))`, [JSON.stringify(ids)]) as Where;
}

const ANONYMOUS: KnownAsker = { user: null, tenant: null, now: new Date(0), groups: [] };

/** Every object of the caller, collected before the rows are read, if there are not too many. */
async function idsFirst(
  { db, declaration, asker }: PageQuestion,
  parents: readonly unknown[],
  idsMax: number,
): Promise<AccessNarrowing | undefined> {
  const counted = new GrantSql(db.dialect, asker);
  const sources = idSources(counted, declaration, parents);
  if (sources.length === 0) return { where: NOTHING, isComplete: true };
  const counts = sources.map(({ from }, index) => `(select count(*) from (select 1 as one ${from} limit ${idsMax + 1}) c${index})`);
  const [row] = await db.query<{ count: number | bigint }>(`select ${counts.join(' + ')} as count`, counted.values.list, {
    replanned: true,
  });
  if (Number(row?.count ?? 0) > idsMax) return undefined;
  const sql = new GrantSql(db.dialect, asker);
  const ids = idSources(sql, declaration, parents)
    .map(({ id, from }) => `select ${id} ${from}`)
    .join(' union all ');
  const key = `this.${declaration.key.name}`;
  const text = db.dialect === 'postgres' ? `${key} = any(array(${ids}))` : `${key} in (${ids})`;
  return { where: whereSql(text, sql.values.list) as Where, isComplete: true };
}

function idSources(
  sql: GrantSql,
  declaration: ObjectActions,
  parents: readonly unknown[],
): { readonly id: string; readonly from: string }[] {
  const sources: { id: string; from: string }[] = [];
  if (declaration.actions.has(VIEW))
    sources.push({
      id: sql.textKey(declaration, 'g.object_id'),
      from: `from grants g where g.object_deleted_at is null and ${sql.grantsOf(declaration, VIEW)}`,
    });
  const key = `t.${quoteName(declaration.key.name)}`;
  const table = quoteName(declaration.type);
  const owned = sql.isOwned(declaration, 't');
  if (owned !== undefined) sources.push({ id: key, from: `from ${table} t where ${owned}${ofTenant(sql, declaration)}` });
  if (parents.length > 0 && declaration.parent !== undefined) {
    const reference = `t.${quoteName(declaration.through as string)}`;
    sources.push({
      id: key,
      from: `from ${table} t where ${amongKeys(sql, declaration.parent, reference, parents)}${ofTenant(sql, declaration)}`,
    });
  }
  return sources;
}

/** The admin site may show rows of every tenant to callers without one: the statement's own condition decides. */
function ofTenant(sql: GrantSql, declaration: ObjectActions): string {
  return sql.asker.tenant === null ? '' : sql.isRowOfTenant(declaration, 't');
}

function amongKeys(sql: GrantSql, declaration: ObjectActions, expression: string, keys: readonly unknown[]): string {
  return sql.among(expression, () => keys, sql.keyType(declaration));
}

/**
 * The parents that give `view` to their objects: those the caller may view, and those below them, as deep as it counts. Top down, so that the
 * cost is what the caller may see of the parents, not how many there are. Undefined when there are too many.
 */
async function reachableParents(
  db: Db,
  declaration: ObjectActions,
  asker: KnownAsker,
  depth = declaration.depth,
): Promise<readonly unknown[] | undefined> {
  const { parent } = declaration;
  if (parent === undefined || depth === 0) return [];
  const sql = new GrantSql(db.dialect, asker);
  const own = new Set<unknown>();
  if (parent.actions.has(VIEW)) {
    const key = `t.${quoteName(parent.key.name)}`;
    const owned = sql.isOwned(parent, 't');
    const granted = `select ${sql.textKey(parent, 'g.object_id')} as id from grants g where g.object_deleted_at is null and ${sql.grantsOf(parent, VIEW)} limit ${PARENTS_MAX + 1}`;
    const ownRows = `select ${key} as id from ${quoteName(parent.type)} t where ${owned}${sql.isUndeleted(parent, 't')} limit ${PARENTS_MAX + 1}`;
    const text = owned === undefined ? granted : `select id from (${granted}) a union select id from (${ownRows}) b`;
    for (const { id } of await db.query<{ id: unknown }>(text, sql.values.list)) own.add(id);
  }
  if (own.size > PARENTS_MAX) return undefined;
  // Those below others: the levels above give to the parents what the parents give to the objects.
  if (parent.parent === parent) {
    let level: readonly unknown[] = [...own];
    for (let deep = 1; deep < depth && level.length > 0; deep += 1) {
      level = (await childrenOf(db, parent, level)).filter((id) => !own.has(id));
      for (const id of level) own.add(id);
      if (own.size > PARENTS_MAX) return undefined;
    }
  } else {
    const above = await reachableParents(db, parent, asker, depth - 1);
    if (above === undefined) return undefined;
    if (above.length > 0) for (const id of await childrenOf(db, parent, above)) own.add(id);
  }
  return own.size > PARENTS_MAX ? undefined : [...own];
}

async function childrenOf(db: Db, declaration: ObjectActions, parents: readonly unknown[]): Promise<unknown[]> {
  const sql = new GrantSql(db.dialect, ANONYMOUS);
  const among = amongKeys(sql, declaration.parent as ObjectActions, `t.${quoteName(declaration.through as string)}`, parents);
  const rows = await db.query<{ id: unknown }>(
    `select t.${quoteName(declaration.key.name)} as id from ${quoteName(declaration.type)} t where ${among}${sql.isUndeleted(declaration, 't')} limit ${PARENTS_MAX + 1}`,
    sql.values.list,
  );
  return rows.map(({ id }) => id);
}
