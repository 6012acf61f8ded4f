import type { Db } from '../engine/db.ts';
import { quoteName } from '../declare/names.ts';
import { requireArguments } from '../../options/read-options.ts';
import { anObject, queryable, filledText } from '../../options/value-rule.ts';

/** Rows to be counted: the part of a statement from FROM on. */
export interface CountSource {
  /** `from orders o where o.owner_id = $1`. */
  readonly from: string;
  /** Values of `$1`, `$2`, … */
  readonly parameters: readonly unknown[];
  /** Says what is counted, for the log, where that may take long: see `QueryOptions.mayBeLong`. */
  readonly mayBeLong?: string | undefined;
}

/** A plan made once for any value takes a filter for common or rare when it is not. */
const PLANNED_EACH_TIME = { replanned: true } as const;

/** How many rows there are, counted no further than `max`; null when there are more. */
export async function countUpTo(db: Db, source: CountSource, max: number): Promise<number | null> {
  requireArguments('countUpTo()', { db, source }, { db: queryable, source: anObject });
  const { from, parameters, mayBeLong } = source;
  const [row] = await db.query<{ count: number | bigint }>(
    `select count(*) as count from (select 1 as one ${from} limit ${max + 1}) counted`,
    parameters,
    mayBeLong === undefined ? PLANNED_EACH_TIME : { ...PLANNED_EACH_TIME, mayBeLong },
  );
  const count = Number(row?.count ?? 0);
  return count > max ? null : count;
}

/**
 * About how many rows a table has, from the database's own statistics; with `source`, about how many of them match (PostgreSQL only).
 * Undefined when the database does not know: count instead. It counts everybody's rows: not for lists that callers see a part of.
 */
export async function estimateCount(db: Db, table: string, source?: CountSource): Promise<number | undefined> {
  requireArguments('estimateCount()', { db, table }, { db: queryable, table: filledText });
  if (db.dialect === 'sqlite') return source === undefined ? sqliteEstimate(db, table) : undefined;
  if (source !== undefined) return plannedRows(db, source);
  const [row] = await db.query<{ rows: number }>('select c.reltuples::float8 as rows from pg_class c where c.oid = to_regclass($1)', [
    quoteName(table),
  ]);
  // -1: never analyzed.
  return row === undefined || row.rows < 0 ? undefined : Math.round(row.rows);
}

async function plannedRows(db: Db, { from, parameters }: CountSource): Promise<number | undefined> {
  const [row] = await db.query<{ 'QUERY PLAN': readonly { readonly Plan?: { readonly 'Plan Rows'?: number } }[] }>(
    `explain (format json) select 1 ${from}`,
    parameters,
    PLANNED_EACH_TIME,
  );
  return row?.['QUERY PLAN'][0]?.Plan?.['Plan Rows'];
}

/** What ANALYZE wrote; the table of statistics exists only after the first. */
async function sqliteEstimate(db: Db, table: string): Promise<number | undefined> {
  const known = await db.query(`select 1 as found from sqlite_master where name = 'sqlite_stat1'`);
  if (known.length === 0) return undefined;
  // One row per index, which begins with the number of its entries: an index of a part of the rows has fewer.
  const [row] = await db.query<{ rows: number | bigint | null }>(
    'select max(cast(stat as integer)) as rows from sqlite_stat1 where tbl = $1',
    [table],
  );
  return row === undefined || row.rows === null ? undefined : Number(row.rows);
}
