import type { AdminContext, AdminResource } from '../app/admin/declaration.ts';
import { groupDigits } from '../app/admin/group-digits.ts';
import { labelOf } from '../app/admin/model-columns.ts';
import { adminBuckets, type AdminBuckets } from '../app/admin/range.ts';
import type { AdminOverview, AdminSection, AdminTile } from '../app/admin/sections.ts';
import type { AdminRange, AdminResourceShape } from '../app/admin/shapes.ts';
import { chartPlan, drawnChart } from '../app/admin/stats-charts.ts';
import type { App } from '../app/declare/module.ts';
import type { Item } from '../crud/declare/item.ts';
import type { AnyResource } from '../crud/declare/resource.ts';
import type { StatsOptions } from '../crud/options/stats-options.ts';
import { declaredStats, staffStats } from '../crud/staff/staff-stats.ts';
import type { Where } from '../db/sql/where/where.ts';
import type { ScreenOverview } from './screen-words.ts';
import { unlessRefused } from './staff-access.ts';

type Shape = Pick<AdminResourceShape, 'name' | 'label' | 'filters'>;
type Read = (groupBy: readonly string[], metrics: readonly string[], within: Where) => Promise<readonly Item[]>;

const ROWS_MAX = 10;

/** The numbers of an application on the overview: what the statistics of the resource say about a range of time, and about the period before. */
export function screenOverview(
  app: App,
  resource: AnyResource,
  shape: Shape,
  words: ScreenOverview,
): NonNullable<AdminResource['overview']> {
  const stats = declaredStats(app, resource);
  if (stats === undefined)
    throw new TypeError(`screen("${resource.name}"): overview shows statistics, and no controller of the resource declares \`stats\`.`);
  checkNames(resource, words, stats);
  return (context, range) => unlessRefused(() => readOverview(app, { resource, shape, words, stats }, context, range), empty(shape));
}

function checkNames(resource: AnyResource, { time, metrics, charts = [], tables = [] }: ScreenOverview, stats: StatsOptions): void {
  const groups = [time, ...charts.flatMap(({ by }) => by ?? []), ...tables.map(({ by }) => by)];
  const measured = [...metrics, ...charts.flatMap(({ series }) => series.map(({ metric }) => metric))];
  const wrong = [
    ...groups.filter((name) => stats.by?.includes(name) !== true),
    ...measured.filter((name) => !Object.hasOwn(stats.metrics, name)),
  ];
  if (wrong.length > 0)
    throw new TypeError(
      `screen("${resource.name}"): overview names ${wrong.join(', ')}; the statistics have by: ${(stats.by ?? []).join(', ')}, metrics: ${Object.keys(stats.metrics).join(', ')}.`,
    );
}

const empty = ({ label }: Shape): AdminOverview => ({ title: label, tiles: [], charts: [], tables: [] });

interface Asked {
  readonly resource: AnyResource;
  readonly shape: Shape;
  readonly words: ScreenOverview;
  readonly stats: StatsOptions;
}

async function readOverview(
  app: App,
  { resource, shape, words, stats }: Asked,
  context: AdminContext,
  range: AdminRange,
): Promise<AdminOverview> {
  const { principal, requestId, databases } = context;
  const caller = { user: principal.user, principal, tenant: await context.tenant(), requestId, databases };
  const read: Read = (groupBy, metrics, within) => staffStats(app, resource, caller, stats, { groupBy, metrics, within });
  const { time, metrics, charts = [], tables = [] } = words;
  const now = context.clock.now();
  const kind = (resource.model as unknown as { columns: Record<string, { settings: { kind: string } }> }).columns[time]?.settings.kind;
  const isDate = kind === 'date';
  const buckets = adminBuckets(range, now, isDate ? 86_400_000 : 0);
  const before = periodBefore(buckets);
  const within = ({ since, until }: Pick<AdminBuckets, 'since' | 'until'>): Where =>
    ({ [time]: { gte: isDate ? day(since) : since, lt: isDate ? day(until) : until } }) as Where;
  const [[sums = {}], [earlier = {}]] = [await read([], metrics, within(buckets)), await read([], metrics, within(before))];
  const drawn = [];
  for (const chart of charts) {
    const plan = chartPlan({ ...chart, time, since: 'since' }, isDate, range, now);
    const rows = await read(plan.query['group_by']?.split(',') ?? [], plan.query['metrics']?.split(',') ?? [], within(plan.buckets));
    drawn.push(drawnChart({ ...chart, time, since: 'since' }, plan, rows.map(withTimes)));
  }
  const listed = [];
  for (const { title, by } of tables) listed.push(tableOf(title, by, metrics, await read([by], metrics, within(buckets))));
  const link = linkTo(shape, time, buckets, now);
  return {
    title: shape.label,
    tiles: metrics.map((metric) => tileOf(metric, sums[metric], earlier[metric], link)),
    charts: drawn,
    tables: listed,
  };
}

/** As long as the range, up to its begin. */
function periodBefore({ since, until }: AdminBuckets): Pick<AdminBuckets, 'since' | 'until'> {
  return { since: new Date(2 * since.getTime() - until.getTime()), until: since };
}

const day = (at: Date): string => at.toISOString().slice(0, 10);

/** Groups of time as text, as statistics send them. */
function withTimes(row: Item): Item {
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, value instanceof Date ? value.toISOString() : value]));
}

function tileOf(metric: string, value: unknown, earlier: unknown, link: AdminTile['link']): AdminTile {
  return {
    label: labelOf(metric),
    value: numberOf(value),
    unit: 'count',
    tone: 'info',
    hint: comparison(numberOf(value) ?? 0, numberOf(earlier) ?? 0),
    ...(link === undefined ? {} : { link }),
  };
}

function numberOf(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value);
}

/** `12 % more than in the period before (1,204).` */
export function comparison(now: number, earlier: number): string {
  if (earlier === now) return `As many as in the period before.`;
  if (earlier === 0) return 'None in the period before.';
  const percent = Math.round((Math.abs(now - earlier) / Math.abs(earlier)) * 100);
  return `${groupDigits(percent)} % ${now > earlier ? 'more' : 'less'} than in the period before (${groupDigits(Math.round(earlier))}).`;
}

function tableOf(title: string, by: string, metrics: readonly string[], rows: readonly Item[]): Extract<AdminSection, { kind: 'table' }> {
  const [first = ''] = metrics;
  const largest = rows.toSorted((a, b) => Number(b[first] ?? 0) - Number(a[first] ?? 0)).slice(0, ROWS_MAX);
  return {
    kind: 'table',
    title,
    columns: [
      { name: by, label: labelOf(by), kind: 'text' },
      ...metrics.map((metric) => ({ name: metric, label: labelOf(metric), kind: 'number' as const })),
    ],
    rows: largest.map((row) => {
      const value = row[by] as string | number | boolean | null | undefined;
      const name = value === null || value === undefined ? '–' : String(value);
      return {
        id: name,
        title: name,
        values: { [by]: name, ...Object.fromEntries(metrics.map((metric) => [metric, numberOf(row[metric])])) },
      };
    }),
    empty: 'Nothing in this range.',
  };
}

/** The list of what was counted, where it can be narrowed to the range. */
function linkTo({ name, filters }: Shape, time: string, { since, until }: AdminBuckets, now: Date): AdminTile['link'] {
  const ends = filters.find((filter) => filter.name === time && filter.kind === 'time')?.ends;
  if (ends === undefined) return undefined;
  return { resource: name, filters: { [ends[0]]: since.toISOString(), ...(until <= now ? { [ends[1]]: until.toISOString() } : {}) } };
}
