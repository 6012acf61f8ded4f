import type { App } from '../../app/declare/module.ts';
import type { Database } from '../../db/engine/db.ts';
import { quoteName } from '../../db/declare/names.ts';
import type { Fault } from '../../options/fault.ts';
import { mountedResourceOf } from '../serve/controller.ts';
import type { MountedResource } from '../mount/mounted-resource.ts';
import { unindexedColumns } from '../checks/unindexed.ts';

export interface ListWarning {
  readonly resource: string;
  readonly fault: Fault;
}

/** Below this many rows reading a whole table costs nothing to speak of. */
const ROWS_MIN = 1_000;
/** A search reads rows much faster than a person notices until there are this many. */
const SEARCHED_ROWS_MIN = 10_000;

/** A relation is named: the one. */
const ARTICLES: Readonly<Record<string, string>> = { filter: 'a', ordering: 'an' };

/** W008 and W009: lists that read a whole table. The size of the tables decides which are worth a warning. */
export async function listWarnings(app: App): Promise<ListWarning[]> {
  const warnings: ListWarning[] = [];
  for (const controller of app.controllers) {
    const mounted = mountedResourceOf(controller);
    if (mounted === undefined) continue;
    const { name, using } = mounted.policy;
    const database = app.databases[using] as Database;
    for (const { table, column, usedBy } of unindexedColumns(mounted)) {
      const rows = await estimatedRows(database, table);
      if (rows !== undefined && rows < ROWS_MIN) continue;
      warnings.push({
        resource: name,
        fault: {
          id: 'W008',
          message: `no index of ${table}${size(rows)} serves ${column}, the column of ${ARTICLES[usedBy] ?? 'the'} ${usedBy}.`,
          hint: 'Add one that begins with it, or with tenant and owner before it.',
        },
      });
    }
    const searched = searchedColumns(mounted);
    if (searched.length === 0) continue;
    const table = mounted.policy.model.name;
    const rows = await rowsUpTo(database, table, SEARCHED_ROWS_MIN);
    if (rows < SEARCHED_ROWS_MIN) continue;
    warnings.push({
      resource: name,
      fault: {
        id: 'W009',
        message: `looking into ${searched.join(', ')} reads every row of ${table} (${SEARCHED_ROWS_MIN} rows or more).`,
        hint: 'Let the rows of a caller begin an index (tenant, owner), or use another search backend.',
      },
    });
  }
  return warnings;
}

/** Columns that are searched by what they contain, where no index narrows the rows to those of the caller. */
function searchedColumns({ policy, options }: MountedResource): string[] {
  const scoping = new Set([policy.bounds.tenant, policy.bounds.owner]);
  const isNarrowed = policy.model.table.indexes.some(({ columns }) => scoping.has((columns[0] ?? '').replace(/^-/, '')));
  if (isNarrowed) return [];
  const filters = Object.entries(options.filters ?? {}).filter(
    ([name, operators]) =>
      Array.isArray(operators) && policy.hasColumn(name) && operators.some((each) => each === 'contains' || each === 'ends'),
  );
  const search: unknown = options.search;
  return [...new Set([...(Array.isArray(search) ? (search as string[]) : []), ...filters.map(([name]) => name)])];
}

function size(rows: number | undefined): string {
  return rows === undefined ? '' : ` (about ${rows} rows)`;
}

/** What PostgreSQL's statistics say about the size of a table; undefined where it is unknown. */
async function estimatedRows(database: Database, table: string): Promise<number | undefined> {
  if (database.dialect !== 'postgres') return undefined;
  const [row] = await database.query<{ rows: number }>('select reltuples::float8 as rows from pg_class where oid = to_regclass($1)', [
    quoteName(table),
  ]);
  return row === undefined || row.rows < 0 ? undefined : Math.round(row.rows);
}

/** How many rows there are, counted no further than `max`. */
async function rowsUpTo(database: Database, table: string, max: number): Promise<number> {
  const [row] = await database.query<{ count: number | bigint }>(
    `select count(*) as count from (select 1 from ${quoteName(table)} limit ${max}) as bounded`,
  );
  return Number(row?.count ?? 0);
}
