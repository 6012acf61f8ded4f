import { columnDefinition } from '../../db/declare/column.ts';
import { columnJsonSchema } from '../../db/declare/column-json.ts';
import { compareValues, type Comparable } from '../../db/declare/comparable.ts';
import { quoteName } from '../../db/declare/names.ts';
import type { Dialect } from '../../db/dialect.ts';
import type { Db } from '../../db/engine/db.ts';
import type { Where } from '../../db/sql/where/where.ts';
import type { CompiledWhere } from '../../db/sql/where/compile-where.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { FieldError } from '../../errors/kit-error.ts';
import type { QueryValues } from '../../http/input/query-string.ts';
import type { JsonSchema, Schema } from '../../http/declare/schema.ts';
import type { Fault } from '../../options/fault.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import type { CrudRequest } from '../policy/crud-request.ts';
import { crudErrors } from '../declare/errors.ts';
import type { ControllerLimits } from '../declare/limits.ts';
import { describe } from './index-serves.ts';
import { conditions, narrowWhole } from './list.ts';
import type { ListPage } from '../options/list-page.ts';
import type { Context, ListAccess } from './list-access.ts';
import { ListQueryReader } from './list-query.ts';
import { type Metric, metricKinds } from '../declare/metric.ts';
import { pascal } from '../../db/declare/component-name.ts';
import { widestView } from '../policy/make-view.ts';
import type { Policy } from '../policy/policy.ts';
import type { View, ViewColumn } from '../policy/view.ts';
import { readNames } from '../parameters/name-list.ts';
import { readFresh } from './read-fresh.ts';
import { unlessStopped } from './read.ts';
import { unknownName } from './shape.ts';
import { markVisible } from '../policy/rule-marks.ts';
import type { Item } from '../declare/item.ts';
import { asIs, type Bucket, buckets, bucketSql, isSumOverflow, metricPlan, SumTooLarge, valueOf } from './stats-sql.ts';
import type { StatsOptions } from '../options/stats-options.ts';

/** One column of `group_by`. */
interface Group {
  /** As in the answer: `status`, `created_at__month`. */
  readonly name: string;
  readonly column: ViewColumn;
  readonly bucket: Bucket | undefined;
}

interface StatsRequest {
  readonly groups: readonly Group[];
  readonly metrics: readonly (readonly [string, Metric])[];
  readonly ordering: readonly { readonly name: string; readonly descending: boolean }[];
}

/** `GET /stats`: counts, sums and means of the rows a caller sees, by groups, in one statement. */
export class Stats {
  readonly #access: ListAccess;
  readonly #options: StatsOptions;

  constructor(access: ListAccess, options: StatsOptions) {
    this.#access = access;
    this.#options = options;
  }

  readonly handle = async (context: Context): Promise<ListPage> => {
    const access = this.#access;
    const { policy } = access;
    const request = await access.request(context, 'stats');
    const view = await access.view(request);
    const { group_by: groupBy, metrics, ordering, ...rest } = context.query as QueryValues;
    const faults: FieldError[] = [];
    const stats = this.#read(view, { groupBy, metrics, ordering }, faults);
    const reader = new ListQueryReader(access.list, request, view);
    const given = await reader.readRows(rest, ['group_by', 'metrics', 'ordering'], faults);
    const db = policy.database(request);
    const fixed = [...(await access.permittedRows(context, request)), ...(await access.parentRows(context, request, db, true))];
    const where = [...(await narrowWhole(db, request, policy)), ...(await conditions(request, policy, given, fixed))];
    const items = await readFresh(access, context, request, fixed, (fresh) => this.#rows(fresh, request, stats, where));
    return { items, count: items.length, next: null, previous: null };
  };

  /** As a program asks: names of groups and metrics, and a condition for the rows. */
  async of(
    request: CrudRequest,
    { groupBy, metrics, within }: { readonly groupBy: readonly string[]; readonly metrics: readonly string[]; readonly within: Where },
  ): Promise<Item[]> {
    const { policy } = this.#access;
    const view = await this.#access.view(request);
    const faults: FieldError[] = [];
    const stats = this.#read(
      view,
      { groupBy: groupBy.length === 0 ? undefined : [...groupBy], metrics: [...metrics], ordering: undefined },
      faults,
    );
    // Columns that this caller does not see cannot be counted for them.
    if (faults.length > 0) throw coreErrors.permission_denied();
    const db = policy.database(request);
    const where = [...(await narrowWhole(db, request, policy)), ...(await conditions(request, policy, [within], []))];
    return this.#rows(db, request, stats, where);
  }

  async #rows(db: Db, request: CrudRequest, { groups, metrics, ordering }: StatsRequest, where: readonly CompiledWhere[]): Promise<Item[]> {
    const { policy, list } = this.#access;
    const { statsRows } = list.limits;
    const { compiled } = await policy.rows.visible(request);
    for (const { column } of groups)
      if (column.derived !== undefined) await policy.rows.load(request, column.derived.conditions(request.clock.now()));
    const parameters: unknown[] = [];
    const terms = [compiled, ...where].filter(({ constant }) => constant !== true).map((each) => each.append(db.dialect, 't0', parameters));
    terms.unshift(...unlessStopped(db.dialect, policy, 't0'));
    const plans = metrics.map(([name, { kind, column }]) => {
      const settings = column === null ? undefined : policy.settingsOf(column);
      const plan = metricPlan(kind, `t0.${quoteName(column ?? '')}`, settings && columnDefinition(settings), db.dialect);
      return { name, ...plan };
    });
    const selected = [
      ...groups.map((group, index) => `${this.#groupSql(request, group, db.dialect, parameters)} as ${quoteName(`g${index}`)}`),
      ...plans.flatMap(({ columns }, index) => columns.map((sql, part) => `${sql} as ${quoteName(`m${index}.${part}`)}`)),
    ];
    const by = groups.length === 0 ? '' : ` group by ${groups.map((_, index) => index + 1).join(', ')}`;
    const text = `select ${selected.join(', ')} from ${policy.table} t0${terms.length === 0 ? '' : ` where ${terms.join(' and ')}`}${by} limit ${statsRows + 1}`;
    const rows = await db
      .query<Item>(text, parameters, { replanned: true, as: 'wire', mayBeLong: `statistics of ${describe(policy, [compiled, ...where])}` })
      .catch((error: unknown) => {
        if (!isSumOverflow(error)) throw error;
        const floats = metrics.filter(([, { column }]) => column !== null && policy.settingsOf(column).kind === 'float');
        throw sumTooLarge(floats.map(([name]) => name));
      });
    if (rows.length > statsRows) throw crudErrors.too_many_groups({ extensions: { groups_max: statsRows } });
    const items = rows.map((row) => {
      const item: Item = {};
      for (const [index, { name }] of groups.entries()) item[name] = row[`g${index}`];
      for (const [index, { name, columns, value }] of plans.entries()) {
        const read = columns.map((_, part) => row[`m${index}.${part}`] as string | null);
        item[name] = metricValue(name, value, read);
      }
      return item;
    });
    return items.sort(this.#comparison(groups, metrics, ordering));
  }

  /** The value of a group, with its values among the parameters of the statement. */
  #groupSql(request: CrudRequest, group: Group, dialect: Dialect, parameters: unknown[]): string {
    const { derived } = group.column;
    if (derived === undefined) return groupSql(group, dialect);
    const { rows } = this.#access.policy;
    const conditions = derived
      .conditions(request.clock.now())
      .map((where) => rows.compile(request, where).append(dialect, 't0', parameters));
    const cases = conditions.map((condition, index) => `when ${condition} then ${quoteText(derived.names[index] as string)}`);
    return `case ${cases.join(' ')} else ${quoteText(derived.names.at(-1) as string)} end`;
  }

  /** At most a thousand rows unless the controller says otherwise: ordered here, where both databases agree. NULLs are last. */
  #comparison(
    groups: StatsRequest['groups'],
    metrics: StatsRequest['metrics'],
    ordering: StatsRequest['ordering'],
  ): (a: Item, b: Item) => number {
    const comparable = new Map<string, (value: unknown) => Comparable>([
      ...groups.map(({ name, column, bucket }) => [name, bucket === undefined ? valueOf(column.settings) : asIs] as const),
      ...metrics.map(([name, { kind, column }]) => {
        const settings = column === null || kind === 'countDistinct' ? undefined : this.#access.policy.settingsOf(column);
        return [name, settings === undefined ? asIs : valueOf(settings)] as const;
      }),
    ]);
    const terms = [...ordering, ...groups.map(({ name }) => ({ name, descending: false }))];
    return (a, b) => {
      for (const { name, descending } of terms) {
        const [left, right] = [a[name], b[name]];
        if (left === right) continue;
        if (left === null || right === null) return left === null ? 1 : -1;
        const read = comparable.get(name) as (value: unknown) => Comparable;
        const order = compareValues(read(left), read(right));
        if (order !== 0) return descending ? -order : order;
      }
      return 0;
    };
  }

  #read(view: View, given: Record<'groupBy' | 'metrics' | 'ordering', string | string[] | undefined>, faults: FieldError[]): StatsRequest {
    const { statsGroups, statsMetrics, orderingColumns } = this.#access.list.limits;
    const known = groupNames(view, this.#options.by ?? []);
    const offered = measuredIn(view, this.#options.metrics);
    const groups = chosen('group_by', given.groupBy, [...known.keys()], statsGroups, faults).map((name) => known.get(name) as Group);
    const metricNames = offered.map(([name]) => name);
    const wanted = given.metrics === undefined ? metricNames : chosen('metrics', given.metrics, metricNames, statsMetrics, faults);
    if (wanted.length > statsMetrics) faults.push(tooManyOffered(metricNames, statsMetrics));
    const metrics = offered.filter(([name]) => wanted.includes(name));
    const inAnswer = [...groups.map(({ name }) => name), ...metrics.map(([name]) => name)];
    const sorted = given.ordering === undefined ? [] : readNames(given.ordering, 'column', ['query', 'ordering'], faults);
    const ordering = [...new Set(sorted)].map((text) => ({ name: text.replace(/^-/, ''), descending: text.startsWith('-') }));
    for (const { name } of ordering) if (!inAnswer.includes(name)) faults.push(unknownName('ordering', name, inAnswer));
    if (ordering.length > orderingColumns)
      faults.push({ location: ['query', 'ordering'], code: 'too_many', message: `At most ${orderingColumns} columns.` });
    return { groups, metrics, ordering };
  }
}

/** Every name of `group_by` that the columns offer. What is not in the view is left out. */
function groupNames(view: View, columns: readonly string[]): Map<string, Group> {
  const groups = new Map<string, Group>();
  for (const each of columns) {
    const column = view.comparable(each, 'group');
    if (column === undefined) continue;
    const { kind } = column.settings;
    if (kind !== 'timestamp') groups.set(each, { name: each, column, bucket: undefined });
    if (kind !== 'timestamp' && kind !== 'date') continue;
    for (const bucket of buckets) {
      const name = `${each}__${bucket}`;
      if (kind === 'timestamp' || bucket !== 'hour') groups.set(name, { name, column, bucket });
    }
  }
  return groups;
}

/** Everything is computed unless metrics are named; where that is too much, the caller has to choose. */
function tooManyOffered(names: readonly string[], most: number): FieldError {
  const message = `At most ${most} names, and ${names.length} are offered: choose. Known: ${names.join(', ')}.`;
  return { location: ['query', 'metrics'], code: 'too_many', message };
}

function chosen(
  parameter: string,
  given: string | string[] | undefined,
  known: readonly string[],
  max: number,
  faults: FieldError[],
): string[] {
  if (given === undefined) return [];
  const names = [...new Set(readNames(given, 'name', ['query', parameter], faults))];
  if (names.length > max) faults.push({ location: ['query', parameter], code: 'too_many', message: `At most ${max} names.` });
  for (const name of names.slice(0, max)) if (!known.includes(name)) faults.push(unknownName(parameter, name, known));
  return names.filter((name) => known.includes(name)).slice(0, max);
}

function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

function groupSql({ column: { name, settings }, bucket }: Group, dialect: 'sqlite' | 'postgres'): string {
  const sql = `t0.${quoteName(name)}`;
  return bucket === undefined ? sql : bucketSql(sql, settings.kind as 'timestamp' | 'date', bucket, dialect);
}

function metricValue(name: string, value: (read: readonly (string | null)[]) => unknown, read: readonly (string | null)[]): unknown {
  try {
    return value(read);
  } catch (error) {
    if (!(error instanceof SumTooLarge)) throw error;
    throw sumTooLarge([name]);
  }
}

function sumTooLarge(names: readonly string[]): Error {
  return coreErrors.validation_error({
    errors: [
      {
        location: ['query', 'metrics'],
        code: 'too_large',
        message: `The sum ${names.map((name) => `"${name}"`).join(' or ')} is larger than a JSON number can be: filter the rows.`,
      },
    ],
  });
}

/** E007: what the declaration names and cannot have; E016: what not every row shows to a caller. */
export function statsFaults(place: string, policy: Policy, { by = [], metrics }: StatsOptions): Fault[] {
  const view = widestView(policy);
  const known = view.shownColumns().map(({ name }) => name);
  const faults: Fault[] = [];
  const add = (message: string, hint?: string, id = 'E007') => faults.push({ id, message: `${place}: ${message}`, hint });
  const check = (role: string, name: string, kinds: readonly string[], verb: string) => {
    if (policy.hasColumn(name) && policy.settingsOf(name).encrypted !== undefined) return; // reported with the others
    const shown = view.comparable(name, role === 'stats.by' ? 'group' : 'measure');
    if (shown === undefined)
      add(
        `${role} refers to a column "${name}" that does not exist or that callers cannot see.`,
        didYouMean(name, known).trim() || undefined,
      );
    else if (!kinds.includes(shown.settings.kind))
      add(`${role} has "${name}", and a ${shown.settings.kind} column cannot be ${verb}.`, `It must be ${kinds.join(', ')}.`);
    else if (shown.rule?.visibleTo?.mayNeedObject === true)
      add(`${role} has "${name}", whose visibility depends on the row.`, 'Such a column can neither be grouped nor measured.', 'E016');
  };
  for (const name of by) check('stats.by', name, GROUP_KINDS, 'grouped by');
  for (const [name, { kind, column }] of Object.entries(metrics)) {
    if (column !== null) check(`the metric "${name}"`, column, metricKinds(kind), kind === 'sum' || kind === 'avg' ? 'summed' : 'measured');
    if (groupNames(view, by).has(name)) add(`the metric "${name}" has the name of a group.`);
  }
  if (Object.keys(metrics).length === 0) add('stats has no metrics.', 'metrics: { rows: count() }.');
  return faults;
}

const GROUP_KINDS: readonly string[] = ['text', 'enum', 'bool', 'int', 'bigint', 'decimal', 'uuid', 'date', 'timestamp'];

/** The parameters besides the filters. */
export function statsParameters(
  policy: Policy,
  { by = [], metrics }: StatsOptions,
  { statsGroups, statsMetrics, orderingColumns }: ControllerLimits,
  view: View = widestView(policy),
): Record<string, JsonSchema> {
  const groups = [...groupNames(view, by).keys()];
  const names = measuredIn(view, metrics).map(([name]) => name);
  const list = (values: readonly string[], maxItems: number, description: string): JsonSchema => ({
    type: 'array',
    items: { type: 'string', enum: [...values] },
    maxItems,
    'x-style': 'comma',
    description,
  });
  return {
    ...(groups.length === 0 ? {} : { group_by: list(groups, statsGroups, 'Columns to group by. Without it, the result is a single row.') }),
    metrics: list(names, statsMetrics, metricsDescription(names, statsMetrics)),
    ordering: list(
      [...groups, ...names].flatMap((name) => [name, `-${name}`]),
      orderingColumns,
      'Sort columns; prefix with `-` for descending. Default: the group columns.',
    ),
  };
}

function metricsDescription({ length }: readonly string[], most: number): string {
  return length > most ? `Metrics to compute, at most ${most}. Required if more are available.` : 'Metrics to compute. Default: all.';
}

/** The metrics of what the caller sees on every row. */
function measuredIn(view: View, metrics: StatsOptions['metrics']): [string, Metric][] {
  return Object.entries(metrics).filter(([, { column }]) => column === null || view.comparable(column, 'measure') !== undefined);
}

export function statsSchema(
  policy: Policy,
  { by = [], metrics }: StatsOptions,
  { statsRows }: ControllerLimits,
  view: View = widestView(policy),
): Schema {
  const name = `${pascal(policy.name)}Stats`;
  const groups = [...groupNames(view, by).values()];
  const nothing = { type: 'null' };
  const json = (): JsonSchema => ({
    $ref: `#/$defs/${name}`,
    $defs: {
      [name]: {
        type: 'object',
        properties: {
          items: {
            type: 'array',
            maxItems: statsRows,
            items: {
              type: 'object',
              properties: Object.fromEntries([
                ...groups.map((group) => [group.name, markVisible(groupJson(group), group.column)]),
                ...measuredIn(view, metrics).map(([each, metric]) => [
                  each,
                  markVisible(metricJson(metric, view), metric.column === null ? undefined : view.comparable(metric.column, 'measure')),
                ]),
              ]) as Record<string, JsonSchema>,
            },
          },
          count: { type: 'integer', minimum: 0 },
          next: nothing,
          previous: nothing,
        },
        required: ['items', 'count', 'next', 'previous'],
      },
    },
  });
  return {
    '~standard': { version: 1, vendor: 'kit', validate: (value: unknown) => ({ value }), jsonSchema: { input: json, output: json } },
  };
}

function groupJson({ column: { settings }, bucket }: Group): JsonSchema {
  if (bucket === undefined) {
    const { readOnly: _readOnly, ...json } = columnJsonSchema({ ...settings, nullable: true }, 'output');
    return json;
  }
  return {
    type: ['string', 'null'],
    format: settings.kind === 'date' ? 'date' : 'date-time',
    description: `The first ${settings.kind === 'date' ? 'day' : 'timestamp'} of the ${bucket}, in UTC.`,
  };
}

function metricJson({ kind, column }: Metric, view: View): JsonSchema {
  if (column === null || kind === 'countDistinct') return { type: 'integer', minimum: 0 };
  const settings = view.comparable(column, 'measure')?.settings;
  const isText = settings !== undefined && (settings.kind === 'decimal' || (settings.kind === 'bigint' && kind !== 'avg'));
  if (kind === 'sum' || kind === 'avg')
    return isText
      ? { type: ['string', 'null'], format: settings.kind === 'decimal' ? 'decimal' : 'int64' }
      : { type: [settings?.kind === 'int' && kind === 'sum' ? 'integer' : 'number', 'null'] };
  const { readOnly: _readOnly, ...json } = settings === undefined ? {} : columnJsonSchema({ ...settings, nullable: true }, 'output');
  return json;
}
