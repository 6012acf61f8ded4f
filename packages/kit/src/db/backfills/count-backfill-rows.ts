import type { Db } from '../engine/db.ts';
import { statementsOf } from '../sql/model-statements.ts';
import { compileWhere } from '../sql/where/compile-where.ts';
import type { Backfill } from './backfill.ts';

/** Counted exactly up to here: about a second. */
const COUNTED_MAX = 1_000_000;

/** How many rows a back-fill has to do; more than a million are estimated by the statistics of PostgreSQL. */
export async function countBackfillRows(db: Db, { model, where }: Backfill): Promise<number> {
  const values: unknown[] = [];
  const matching = `from ${statementsOf(model).table} r where ${compileWhere(model, where).append(db.dialect, 'r', values)}`;
  const counted = db.dialect === 'sqlite' ? `select 1 ${matching}` : `select 1 ${matching} limit ${COUNTED_MAX}`;
  const [found] = await db.query<{ rows: number | bigint }>(`select count(*) as rows from (${counted}) counted`, values);
  const rows = Number(found?.rows ?? 0);
  if (db.dialect === 'sqlite' || rows < COUNTED_MAX) return rows;
  const [plan] = await db.query<{ 'QUERY PLAN': readonly [{ readonly Plan: { readonly 'Plan Rows': number } }] }>(
    `explain (format json) select 1 ${matching}`,
    values,
  );
  return Math.max(rows, plan?.['QUERY PLAN'][0].Plan['Plan Rows'] ?? 0);
}

/** Whether the table has a row that the back-fill would do. */
export async function hasBackfillRows(db: Db, { model, where }: Backfill): Promise<boolean> {
  const values: unknown[] = [];
  const condition = compileWhere(model, where).append(db.dialect, 'r', values);
  return (await db.query(`select 1 as found from ${statementsOf(model).table} r where ${condition} limit 1`, values)).length > 0;
}
