import type { Db } from '../../db/engine/db.ts';
import { cutPage, type Keyset, type KeysetPosition } from '../../db/sql/keyset/keyset.ts';
import type { CompiledWhere } from '../../db/sql/where/compile-where.ts';
import type { Where } from '../../db/sql/where/where.ts';
import type { Item } from '../declare/item.ts';
import { limits } from '../declare/limits.ts';
import type { SearchBackend } from '../declare/search-backend.ts';
import { crudErrors } from '../declare/errors.ts';
import type { MountedResource } from '../mount/mounted-resource.ts';
import { callerOf, type CrudRequest } from '../policy/crud-request.ts';
import type { Policy } from '../policy/policy.ts';
import type { RowState } from '../policy/row-scope.ts';
import { csvColumns, csvHeader, csvWriter } from '../files/csv-text.ts';
import type { FileFormat } from '../options/file-options.ts';
import { BoundedWhere } from '../read/bounded.ts';
import { describe, longPage } from '../read/index-serves.ts';
import { conditions, countBeyond, narrowWhole, selectPage, unitFor } from '../read/list.ts';
import { presentRows, type Selection, streamRows } from '../read/read.ts';
import type { SelectUnit } from '../read/select.ts';
import type { Shape } from '../read/shape.ts';
import type { View } from '../policy/view.ts';

/** A list as the admin site asks for it: what it narrows the rows by is decided when the view of the caller is known. */
export interface StaffListQuery {
  /** Adds the conditions of search and filters. `shows`: the columns that this staff member sees on every row. */
  readonly narrow: (
    bounded: BoundedWhere,
    shows: (name: string) => boolean,
    search: StaffSearch,
    hasLongRule: boolean,
  ) => Promise<StaffOrder>;
  /** The filters that are set. */
  readonly filters: Readonly<Record<string, string>>;
  readonly rows: RowState;
  /** Columns and computed fields that the items have. Those that this staff member may not see are left out. */
  readonly fields: readonly string[];
}

/** The condition of a search by the backend of the resource. */
export type StaffSearch = (backend: SearchBackend, text: string) => Promise<Where>;

export interface StaffOrder {
  readonly keyset: Keyset;
  /** An index has the rows in this order. */
  readonly isIndexed: boolean;
  /** Characters of the values that the order compares, by column. */
  readonly cut?: Readonly<Record<string, number>>;
}

export interface StaffPageQuery extends StaffListQuery {
  readonly limit: number;
  readonly countMax: number;
  /** Where the page begins, if its cursor belongs to the list. */
  readonly start: (keyset: Keyset, db: Db) => { readonly position: KeysetPosition; readonly count: number | null } | undefined;
}

/** A row as the caller sees it, by the text of its key. */
export interface StaffItem {
  readonly key: string;
  readonly item: Item;
}

export interface StaffPage {
  readonly items: readonly StaffItem[];
  readonly count: number | null;
  /** The position of the last row, where more follow. */
  readonly next: KeysetPosition | undefined;
  readonly keyset: Keyset;
  readonly bounded: Pick<BoundedWhere, 'searched' | 'isCut'>;
}

interface Narrowed {
  readonly db: Db;
  readonly bounded: BoundedWhere;
  readonly order: StaffOrder;
  readonly where: readonly CompiledWhere[];
  readonly shape: Shape;
}

async function narrowed(mounted: MountedResource, request: CrudRequest, query: StaffListQuery): Promise<Narrowed> {
  const { policy } = mounted;
  const db = policy.database(request);
  const view = await mounted.view(request);
  const bounded = new BoundedWhere(db, policy);
  const search: StaffSearch = (backend, text) =>
    Promise.resolve(backend.where(text, { caller: callerOf(request), model: policy.model, dialect: db.dialect }));
  const order = await query.narrow(bounded, (name) => view.knows(name) === 'always', search, await hasLongRule(request, policy, db));
  const where = await conditions(request, policy, bounded.where, []);
  const fields = visible(view, query.fields);
  return { db, bounded, order, where, shape: mounted.shape(view, { fields, expand: [] }, 1) };
}

/** A function of the audience leaves some rows, which no index finds. A rule that is data is the same for all staff: its table has an index, or is small. */
async function hasLongRule(request: CrudRequest, policy: Policy, db: Db): Promise<boolean> {
  if (typeof policy.audienceRule?.rows !== 'function') return false;
  const { compiled } = await policy.rows.visible(request);
  return compiled.constant !== true && longPage(policy, [compiled], db.dialect) !== undefined;
}

/** The names of fields that the caller sees at all. */
export function visible(view: View, names: readonly string[]): string[] {
  return names.filter((name) => view.fields.has(name));
}

/** One page, and its count where it is the first. `lookup`: the column that items are addressed by. */
export async function staffPage(mounted: MountedResource, request: CrudRequest, query: StaffPageQuery, lookup: string): Promise<StaffPage> {
  const { policy } = mounted;
  const { db, bounded, order, where, shape } = await narrowed(mounted, request, query);
  const { keyset, isIndexed, cut = {} } = order;
  const unit = unitFor(shape, [...new Set([lookup, ...keyset.names])]);
  const from = query.start(keyset, db);
  const found = await selectPage(
    db,
    request,
    policy,
    {
      unit,
      where,
      orderBy: keyset.orderSql(db.dialect),
      limit: query.limit + 1,
      rows: query.rows,
      isFreeForm: true,
      isLong: where.length > 0 || !isIndexed,
      after:
        from === undefined
          ? undefined
          : {
              text: (first) => keyset.text(db.dialect, { ...from, backwards: false }, first),
              values: keyset.values(db.dialect, from.position),
              isRange: keyset.isRowComparison,
            },
    },
    { limit: query.limit + 1, isFiltered: true },
  );
  const { rows, hasMore } = cutPage(found, query.limit, false);
  const items = await presentRows(db, request, unit, rows);
  const last = rows.at(-1);
  const count = from?.count ?? (hasMore ? await countAll(db, request, query, where, mounted) : rows.length);
  return {
    items: items.map((item, index) => ({ key: String(unit.extra(rows[index] as Item, lookup)), item })),
    count: from === undefined ? count : from.count,
    next: hasMore && last !== undefined ? positionOf(unit, keyset, last, cut) : undefined,
    keyset,
    bounded,
  };
}

async function countAll(
  db: Db,
  request: CrudRequest,
  { rows, countMax }: StaffPageQuery,
  where: readonly CompiledWhere[],
  { policy }: MountedResource,
): Promise<number | null> {
  const counted = await countBeyond(db, request, { isDeleted: rows === 'deleted' }, where, {
    options: { count: { upTo: countMax } },
    policy,
  });
  return counted.number;
}

function positionOf(unit: SelectUnit, keyset: Keyset, row: Item, cut: Readonly<Record<string, number>>): KeysetPosition {
  const values = Object.fromEntries(keyset.names.map((name) => [name, unit.extra(row, name)]));
  const position = unit.isWire ? keyset.positionOfWire(values) : keyset.positionOf(values);
  return position.map((value, index) => {
    const length = cut[keyset.names[index] ?? ''];
    return length === undefined || typeof value !== 'string' ? value : Array.from(value).slice(0, length).join('');
  });
}

/** Rows per piece of a file: enough that the round trips do not count, few enough that memory stays flat. */
const CHUNK_ROWS = 500;

/** The rows of a list as text, in one statement: the file is of one moment. The first piece comes with the first rows. */
export async function* staffExport(
  mounted: MountedResource,
  request: CrudRequest,
  query: StaffListQuery,
  format: FileFormat,
): AsyncGenerator<string, void> {
  const { policy } = mounted;
  const { db, order, where, shape } = await narrowed(mounted, request, query);
  const rowsMax = limits.exportRows;
  const count = await countBeyond(db, request, { isDeleted: query.rows === 'deleted' }, where, {
    options: { count: { upTo: rowsMax } },
    policy,
  });
  if (count.number === null) throw crudErrors.export_too_large({ extensions: { rows_max: rowsMax } });
  const unit = unitFor(shape, []);
  const whole = query.rows === 'live' ? await narrowWhole(db, request, policy) : [];
  const selection: Selection = {
    unit,
    where: [...whole, ...where],
    orderBy: order.keyset.orderSql(db.dialect),
    rows: query.rows,
    isFreeForm: true,
  };
  const columns = csvColumns(shape).toSorted((a, b) => query.fields.indexOf(a.path[0] ?? '') - query.fields.indexOf(b.path[0] ?? ''));
  const write = format === 'csv' ? csvWriter(columns, unit.isWire) : jsonLines;
  let opening = format === 'csv' ? csvHeader(columns) : '';
  for await (const rows of streamRows(db, request, selection, CHUNK_ROWS, `export of ${describe(policy, where)}`)) {
    yield opening + write(await presentRows(db, request, unit, rows));
    opening = '';
  }
  if (opening !== '') yield opening;
}

function jsonLines(items: readonly Item[]): string {
  return items
    .map((item) => `${JSON.stringify(item, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))}\n`)
    .join('');
}
