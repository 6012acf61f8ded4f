import type { App } from '../../app/declare/module.ts';
import type { Database } from '../../db/engine/db.ts';
import { keysetOf } from '../../db/sql/keyset/keyset.ts';
import { quoteName } from '../../db/declare/names.ts';
import { compileWhere, type CompiledWhere } from '../../db/sql/where/compile-where.ts';
import type { Where } from '../../db/sql/where/where.ts';
import { orderTerm, type OrderTerm } from '../options/ordering.ts';
import type { MountedResource } from '../mount/mounted-resource.ts';
import type { Policy } from '../policy/policy.ts';
import type { FilteredColumn } from '../parameters/filter-parameters.ts';
import { type LongRead, longRead, termsOf } from '../read/long-read.ts';
import { defaultOrdering } from '../read/ordering.ts';
import { mountedResourceOf } from '../serve/controller.ts';
import type { ListWarning } from './list-warnings.ts';

/** More rows than this take longer than a person waits for a list. */
const ROWS_MAX = 100_000;

/** The rows of the caller who has the most, and one of them. */
interface Stretch {
  /** Columns of the tenant and the owner that begin an index. */
  readonly columns: readonly string[];
  readonly rows: number;
  readonly sample: Readonly<Record<string, unknown>>;
}

/** One request that a route allows. */
interface AllowedRequest {
  /** As a client writes it: `title__contains`. */
  readonly asked: string;
  readonly where: Where;
  readonly ordering: readonly OrderTerm[];
  /** Why it reads every row of the caller, where its conditions do not say so. */
  readonly reason?: string;
}

interface LongRequest extends AllowedRequest {
  readonly read: LongRead;
}

/** W032: routes of which an allowed request reads more than `rowsMax` rows of the tables as they are now. Counts the rows of each caller. */
export async function longRoutes(app: App, rowsMax: number = ROWS_MAX): Promise<ListWarning[]> {
  const warnings: ListWarning[] = [];
  for (const controller of app.controllers) {
    const mounted = mountedResourceOf(controller);
    if (mounted === undefined) continue;
    const database = app.databases[mounted.policy.using] as Database;
    const stretch = await largestStretch(database, mounted.policy);
    if (stretch === undefined || stretch.rows <= rowsMax) continue;
    const own = new Set(Object.values(controller));
    for (const { route, method, path, metadata } of app.routes) {
      if (!own.has(route)) continue;
      const { operation } = (metadata['crud'] ?? {}) as { readonly operation?: string };
      const found = requestsOf(mounted, operation, stretch).flatMap((request) => longRequest(database, mounted.policy, request));
      const [worst] = found;
      if (worst === undefined) continue;
      const { name, model } = mounted.policy;
      const plan = await planOf(database, mounted.policy, worst);
      warnings.push({
        resource: name,
        fault: {
          id: 'W032',
          message: `${method} ${path} can read ${stretch.rows} rows of ${model.name}: with ${found.map(({ asked }) => asked).join(', ')}. The plan with ${worst.asked}: ${plan}.`,
          hint: hintOf(found),
        },
      });
    }
  }
  return warnings;
}

/** Undefined where there are no rows. */
async function largestStretch(database: Database, policy: Policy): Promise<Stretch | undefined> {
  const { table } = policy;
  const columns = scopedPrefix(policy);
  const [group] =
    columns.length === 0
      ? await database.query<Record<string, unknown>>(`select count(*) as kit_rows from ${table}`)
      : await database.query<Record<string, unknown>>(
          `select ${columns.map(quoteName).join(', ')}, count(*) as kit_rows from ${table} group by ${columns.map(quoteName).join(', ')} order by kit_rows desc limit 1`,
        );
  if (group === undefined) return undefined;
  const { from, values } = conditionsSql(database, policy, [valuesOf(columns, group)]);
  const [sample] = await database.query<Record<string, unknown>>(`select * ${from} limit 1`, values);
  return sample === undefined ? undefined : { columns, rows: Number(group['kit_rows']), sample };
}

/** The longest beginning of an index that consists of the columns which the resource fixes for each caller. */
function scopedPrefix({ model, owner, tenant, options, bounds }: Policy): string[] {
  const isOptional = owner?.unless !== undefined || options.access !== undefined;
  const fixed = new Set([tenant?.unless === undefined ? bounds.tenant : undefined, isOptional ? undefined : bounds.owner]);
  const prefixes = model.table.indexes
    .filter(({ where }) => where === undefined)
    .map(({ columns }) => {
      const names = columns.map((column) => column.replace(/^-/, ''));
      const end = names.findIndex((name) => !fixed.has(name));
      return end === -1 ? names : names.slice(0, end);
    });
  return prefixes.reduce((longest, each) => (each.length > longest.length ? each : longest), []);
}

function valuesOf(columns: readonly string[], row: Readonly<Record<string, unknown>>): Where {
  return Object.fromEntries(columns.map((name) => [name, row[name] ?? null])) as Where;
}

function requestsOf(mounted: MountedResource, operation: string | undefined, { sample }: Stretch): AllowedRequest[] {
  const { policy, list } = mounted;
  const ordering = defaultOrdering(policy, list.ordering);
  const scope = scopeOf(policy, sample);
  const request = (asked: string, more: Partial<AllowedRequest> = {}): AllowedRequest => ({ asked, where: scope, ordering, ...more });
  if (operation === 'stats') return [request('any parameters', { reason: 'statistics read all rows that the caller can see' })];
  if (operation !== 'list' && operation !== 'query') return [];
  const filters = [...list.filters.columns.values()].flatMap((column) => filterRequests(column, sample));
  const searched = list.search?.name === 'contains' ? list.search.columns : [];
  return [
    request('no parameters'),
    ...(list.page.count === 'exact' ? [request('its exact count', { reason: 'all rows are counted' })] : []),
    ...(searched.length === 0 ? [] : [request('search', { reason: `no index serves what ${searched.join(', ')} contain` })]),
    ...filters.map(({ asked, where, reason }) => {
      return request(asked, { where: { and: [scope, where] } as Where, ...(reason !== undefined && { reason }) });
    }),
    ...[...list.filters.custom.keys()].map((asked) => request(asked, { reason: 'it is a custom filter' })),
    ...(list.ordering?.by ?? [])
      .flatMap((name) => [name, `-${name}`])
      .map((text) => request(`ordering=${text}`, { ordering: [orderTerm(text)] })),
  ];
}

/** What the resource asks of each row. Rules in code, and grants, may leave out any row: they are a condition that no index serves. */
function scopeOf({ bounds, softDelete }: Policy, sample: Stretch['sample']): Where {
  const fixed = [bounds.tenant, bounds.owner].filter((name) => name !== undefined);
  return {
    ...(valuesOf(fixed, sample) as object),
    ...(softDelete === undefined ? {} : { [softDelete.deletedAt]: null }),
  } as Where;
}

interface FilterRequest {
  readonly asked: string;
  readonly where: Where;
  readonly reason?: string;
}

function filterRequests({ path, relation, operators, column: { derived } }: FilteredColumn, sample: Stretch['sample']): FilterRequest[] {
  return operators.map((operator) => {
    const asked = `${path.replace('.', '__')}${operator === 'eq' ? '' : `__${operator}`}`;
    if (relation !== undefined) return { asked, where: {} as Where, reason: `it is asked of ${relation}, row by row` };
    if (derived !== undefined) return { asked, where: {} as Where, reason: 'conditions decide about each row' };
    const value = sample[path] ?? null;
    const text = operator === 'contains' || operator === 'starts' || operator === 'ends';
    if (text) return { asked, where: { [path]: { [operator]: 'a' } } as Where };
    if (operator === 'isnull') return { asked, where: { [path]: { isnull: false } } as Where };
    if (operator === 'in' || operator === 'nin') return { asked, where: { [path]: { [operator]: [value, value] } } as Where };
    return { asked, where: { [path]: { [operator]: value } } as Where };
  });
}

function longRequest({ dialect }: Database, policy: Policy, request: AllowedRequest): LongRequest[] {
  const compiled = compiledWhere(policy, request.where);
  if (compiled === undefined) return [];
  const { table } = policy.model;
  const ordering = keyset(policy, request.ordering).columns.map(({ name, descending }) => ({ column: name, descending }));
  const ruled =
    policy.options.rows === undefined && policy.options.access === undefined ? undefined : 'a rule in code decides about each row';
  const reason = request.reason ?? ruled;
  const read =
    reason === undefined ? longRead({ table, terms: termsOf([compiled], dialect), ordering, dialect }) : { reason, index: undefined };
  return read === undefined ? [] : [{ ...request, read }];
}

/** Undefined where the sample has no value that the filter could ask for. */
function compiledWhere({ model }: Policy, where: Where): CompiledWhere | undefined {
  try {
    return compileWhere(model, where);
  } catch {
    return undefined;
  }
}

function keyset({ model }: Policy, ordering: readonly OrderTerm[]) {
  const names = ordering.map(({ column, descending }) => `${descending ? '-' : ''}${column}`);
  return keysetOf(model, names, 't0');
}

function conditionsSql(
  { dialect }: Database,
  policy: Policy,
  all: readonly Where[],
): { readonly from: string; readonly values: unknown[] } {
  const values: unknown[] = [];
  const terms = all
    .map((each) => compileWhere(policy.model, each))
    .filter(({ constant }) => constant !== true)
    .map((each) => each.append(dialect, 't0', values));
  return { from: `from ${policy.table} t0${terms.length === 0 ? '' : ` where ${terms.join(' and ')}`}`, values };
}

/** What the database says it would do, in one line. Values of rows are left out. */
async function planOf(database: Database, policy: Policy, { where, ordering }: LongRequest): Promise<string> {
  const { from, values } = conditionsSql(database, policy, [where]);
  const text = `select * ${from} order by ${keyset(policy, ordering).orderSql(database.dialect)} limit 51`;
  if (database.dialect === 'sqlite') {
    const steps = await database.query<{ detail: string }>(`explain query plan ${text}`, values);
    return steps.map(({ detail }) => detail).join('; ');
  }
  const [row] = await database.query<{ 'QUERY PLAN': readonly { readonly Plan: PlanNode }[] }>(`explain (format json) ${text}`, values);
  return row === undefined ? 'unknown' : stepsOf(row['QUERY PLAN'][0]?.Plan).join('; ');
}

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Index Name'?: string;
  readonly 'Plan Rows'?: number;
  readonly Plans?: readonly PlanNode[];
}

function stepsOf(node: PlanNode | undefined): string[] {
  if (node === undefined) return [];
  const index = node['Index Name'] === undefined ? '' : ` using ${node['Index Name']}`;
  return [`${node['Node Type']}${index} (about ${node['Plan Rows'] ?? '?'} rows)`, ...(node.Plans ?? []).flatMap(stepsOf)];
}

function hintOf(found: readonly LongRequest[]): string {
  // One index serves an order and its reverse.
  const byColumns = new Map(
    found.toReversed().flatMap(({ read: { index } }) => (index === undefined ? [] : [[index.join().replaceAll('-', ''), index]])),
  );
  const indexes = [...byColumns.values()].toReversed().map((index) => index.join(', '));
  const others = [...new Set(found.flatMap(({ read }) => (read.index === undefined ? [read.reason] : [])))];
  return [
    ...(indexes.length === 0 ? [] : [`Indexes that help: ${indexes.map((each) => `(${each})`).join(', ')}.`]),
    ...(others.length === 0 ? [] : [`No index helps where ${others.join('; ')}: do without it, or narrow the rows.`]),
  ].join(' ');
}
