import { adminBuckets, type AdminBuckets, rangeFilters } from '../../../app/admin/range.ts';
import { adminCount } from '../../../app/admin/each.ts';
import type { AdminContext } from '../../../app/admin/declaration.ts';
import type { AdminChart, AdminOverview, AdminTile } from '../../../app/admin/sections.ts';
import type { AdminRange } from '../../../app/admin/shapes.ts';
import type { Db } from '../../../db/engine/db.ts';
import { sampled, SAMPLE_ROWS_MAX } from '../../../app/admin/sample-rows.ts';
import { countTrouble, readBacklog, type Backlog, type TroubleCounts } from './overview-store.ts';
import { modelView } from '../../../app/admin/model-view.ts';
import { webhookEndpoints } from '../models.ts';
import { databaseOf, ownerHindrances, endpointState, link, shownUrl, type AdminPlace } from './place.ts';
import { listTroubledEndpoints } from './store.ts';
import { percentile, type Weighted } from './percentile.ts';
import { groupDigits } from '../../../app/admin/group-digits.ts';

const EVENTS = { table: 'webhook_events', key: 'id' } as const;
const DELIVERIES = { table: 'webhook_deliveries', key: 'id' } as const;
const ATTEMPTS = { table: 'webhook_attempts', key: 'delivery_id' } as const;
const TROUBLED_MAX = 10;
const MINUTE_MS = 60_000;
/** Older than the first retries: something keeps work from being sent. */
const OLD_MS = 30 * MINUTE_MS;
/** So old that several retries have failed, or no worker runs. */
const STUCK_MS = 4 * 60 * MINUTE_MS;

/** What the overview says about webhooks, for the events published in a range of time. */
export function webhooksOverview(place: AdminPlace): (context: AdminContext, range: AdminRange) => Promise<AdminOverview> {
  return async (context, range) => {
    const db = databaseOf(place, context);
    const now = context.clock.now();
    const buckets = adminBuckets(range, now);
    const [events, deliveries, attempts, backlog, trouble] = [
      await eventsBy(db, buckets),
      await deliveriesBy(db, buckets),
      await attemptsBy(db, buckets),
      await readBacklog(db),
      await countTrouble(db),
    ];
    const estimated = [events, deliveries, attempts].some(({ scale }) => scale > 1);
    const traffic = { events, deliveries, attempts, estimated, within: rangeFilters(buckets, now) };
    return {
      title: 'Webhooks',
      tiles: [...backlogTiles(place, backlog, trouble, now), ...trafficTiles(place, traffic)],
      charts: chartsOf(buckets, traffic),
      tables: [await troubledTable(place, context)],
    };
  };
}

interface Counted {
  readonly scale: number;
}
type Events = Counted & { readonly counts: readonly number[] };
type Deliveries = Counted & { readonly [Status in 'pending' | 'succeeded' | 'failed']: readonly number[] };
type Attempts = Counted & {
  readonly succeeded: readonly number[];
  readonly failed: readonly number[];
  readonly durations: readonly (readonly Weighted[])[];
};

async function eventsBy(db: Db, buckets: AdminBuckets): Promise<Events> {
  const { rows, scale } = await sampled<{ count: number | bigint }>(db, EVENTS, buckets, { columns: 'count(*) as count' });
  const counts = buckets.starts.map(() => 0);
  for (const { bucket, count } of rows) counts[bucket] = Math.round(Number(count) * scale);
  return { counts, scale };
}

async function deliveriesBy(db: Db, buckets: AdminBuckets): Promise<Deliveries> {
  const { rows, scale } = await sampled<{ status: 'pending' | 'succeeded' | 'failed'; count: number | bigint }>(db, DELIVERIES, buckets, {
    columns: 't.status, count(*) as count',
    groups: ', t.status',
  });
  const counts = { pending: buckets.starts.map(() => 0), succeeded: buckets.starts.map(() => 0), failed: buckets.starts.map(() => 0) };
  for (const { bucket, status, count } of rows) counts[status][bucket] = Math.round(Number(count) * scale);
  return { ...counts, scale };
}

async function attemptsBy(db: Db, buckets: AdminBuckets): Promise<Attempts> {
  const { rows, scale } = await sampled<{ duration_ms: number; count: number | bigint; succeeded: number | bigint }>(
    db,
    ATTEMPTS,
    buckets,
    {
      columns: 't.duration_ms, count(*) as count, sum(case when t.failure_reason is null then 1 else 0 end) as succeeded',
      groups: ', t.duration_ms',
    },
  );
  const durations = buckets.starts.map((): Weighted[] => []);
  const [good, bad] = [buckets.starts.map(() => 0), buckets.starts.map(() => 0)];
  for (const { bucket, duration_ms: value, count, succeeded } of rows) {
    durations[bucket]?.push({ value, weight: Number(count) });
    good[bucket] = (good[bucket] ?? 0) + Number(succeeded);
    bad[bucket] = (bad[bucket] ?? 0) + Number(count) - Number(succeeded);
  }
  const scaled = (counts: readonly number[]) => counts.map((count) => Math.round(count * scale));
  return { scale, durations, succeeded: scaled(good), failed: scaled(bad) };
}

interface Traffic {
  readonly events: Events;
  readonly deliveries: Deliveries;
  readonly attempts: Attempts;
  readonly estimated: boolean;
  readonly within: Readonly<Record<string, string>>;
}

function trafficTiles(place: AdminPlace, { events, deliveries, attempts, estimated, within }: Traffic): AdminTile[] {
  const [succeeded, failed] = [sum(attempts.succeeded), sum(attempts.failed)];
  const made = succeeded + failed;
  const rate = made === 0 ? null : (succeeded / made) * 100;
  const failedForGood = sum(deliveries.failed);
  const sample = estimated ? ` Estimated from a sample of about ${groupDigits(SAMPLE_ROWS_MAX)} rows.` : '';
  const deliveriesIn = (status?: string) => ({
    resource: `deliveries${place.suffix}`,
    filters: { ...within, ...(status === undefined ? {} : { status }) },
  });
  const durations = attempts.durations.flat();
  const [half, most, nearlyAll] = [0.5, 0.95, 0.99].map((share) => percentile(durations, share));
  const others =
    half === undefined || half === null || nearlyAll === undefined || nearlyAll === null
      ? 'Nothing was sent in the range.'
      : `Median ${spoken(half)}, p99 ${spoken(nearlyAll)}.${sample}`;
  return [
    {
      label: 'Success rate',
      value: rate === null ? null : Math.floor(rate * 100) / 100,
      unit: 'percent',
      tone: rate === null ? 'neutral' : rate >= 99 ? 'good' : rate >= 95 ? 'warning' : 'bad',
      hint:
        rate === null ? 'No attempt in the range.' : `${groupDigits(succeeded)} of ${adminCount(made, ['attempt', 'attempts'])}.${sample}`,
      link: deliveriesIn(),
    },
    {
      label: 'Failed permanently',
      value: failedForGood,
      unit: 'count',
      tone: failedForGood > 0 ? 'bad' : 'good',
      hint: `Deliveries that are not retried automatically.${sample}`,
      link: deliveriesIn('failed'),
    },
    {
      label: 'Events',
      value: sum(events.counts),
      unit: 'count',
      tone: 'info',
      hint: `Published in the range.${sample}`,
      link: { resource: `events${place.suffix}`, filters: within },
    },
    {
      label: 'Deliveries',
      value: sum(deliveries.succeeded) + failedForGood + sum(deliveries.pending),
      unit: 'count',
      tone: 'info',
      hint: `For events published in the range.${sample}`,
      link: deliveriesIn(),
    },
    { label: 'Latency p95', value: most ?? null, unit: 'ms', tone: 'neutral', hint: others, link: deliveriesIn() },
  ];
}

function spoken(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

function backlogTiles(place: AdminPlace, backlog: Backlog, trouble: TroubleCounts, now: Date): AdminTile[] {
  const age = backlog.oldest === null ? null : Math.max(0, now.getTime() - backlog.oldest.getTime());
  const more = backlog.complete ? '' : ' More are waiting than are counted.';
  const byAge = age === null || age <= OLD_MS ? 'neutral' : age <= STUCK_MS ? 'warning' : 'bad';
  const inState = (status: string) => ({ resource: `deliveries${place.suffix}`, filters: { status } });
  const counted = (count: number) => (backlog.complete ? count : `${count}+`);
  const endpoints = (state: string) => ({ resource: `endpoints${place.suffix}`, filters: { state } });
  return [
    {
      label: 'Waiting',
      value: counted(backlog.pending),
      unit: 'count',
      tone: byAge,
      hint: `Deliveries that are not finished, regardless of the range.${more}`,
      link: inState('waiting'),
    },
    {
      label: 'Retrying',
      value: counted(backlog.retrying),
      unit: 'count',
      tone: backlog.retrying > 0 ? 'warning' : 'good',
      hint: 'Every attempt so far failed; they are retried.',
      link: inState('retrying'),
    },
    ...(backlog.held === 0
      ? []
      : [
          {
            label: 'Held',
            value: counted(backlog.held),
            unit: 'count',
            tone: byAge === 'neutral' ? 'info' : byAge,
            hint: 'They wait for an earlier delivery with the same ordering key.',
            link: inState('held'),
          } as const,
        ]),
    {
      label: 'Oldest waiting',
      value: age,
      unit: 'age_ms',
      tone: byAge,
      hint: 'Grows without failures when no worker runs. Start one: `kit webhooks deliver --loop`.',
      link: inState('waiting'),
    },
    {
      label: 'Failing endpoints',
      value: trouble.failing,
      unit: 'count',
      tone: trouble.failing > 0 ? 'bad' : 'good',
      hint: 'Active, and their newest attempts failed.',
      link: endpoints('failing'),
    },
    {
      label: 'Disabled endpoints',
      value: trouble.disabled,
      unit: 'count',
      tone: trouble.disabled > 0 ? 'warning' : 'good',
      hint: 'Nothing is sent to them until they are enabled.',
      link: endpoints('disabled'),
    },
    ...(trouble.withoutAudience === 0
      ? []
      : [
          {
            label: 'Events without audience',
            value: trouble.withoutAudience,
            unit: 'count',
            tone: 'warning',
            hint: 'Not sent until an audience is assigned.',
            link: { resource: `events${place.suffix}`, filters: { audience: 'none' } },
          } as const,
        ]),
  ];
}

function chartsOf(buckets: AdminBuckets, { events, deliveries, attempts, estimated }: Traffic): AdminChart[] {
  const suffix = estimated ? ' (estimated)' : '';
  const at = (share: number) => attempts.durations.map((values) => percentile(values, share));
  const chart = (
    title: string,
    kind: AdminChart['kind'],
    unit: AdminChart['unit'],
    series: AdminChart['series'],
    empty: string,
  ): AdminChart => ({
    title: `${title}${suffix}`,
    kind,
    unit,
    buckets: buckets.starts.map((start) => start.toISOString()),
    series,
    empty,
  });
  return [
    chart(
      'Attempts',
      'bars',
      'count',
      [
        { name: 'Succeeded', tone: 'good', values: attempts.succeeded },
        { name: 'Failed', tone: 'bad', values: attempts.failed },
      ],
      'No attempts for events of this period.',
    ),
    chart(
      'Deliveries',
      'bars',
      'count',
      [
        { name: 'Succeeded', tone: 'good', values: deliveries.succeeded },
        { name: 'Failed', tone: 'bad', values: deliveries.failed },
        { name: 'Waiting', tone: 'info', values: deliveries.pending },
      ],
      'No deliveries in this period.',
    ),
    chart('Events', 'bars', 'count', [{ name: 'Published', tone: 'info', values: events.counts }], 'No events in this period.'),
    chart(
      'Latency of attempts',
      'lines',
      'ms',
      [
        { name: 'p50', tone: 'good', values: at(0.5) },
        { name: 'p95', tone: 'warning', values: at(0.95) },
        { name: 'p99', tone: 'bad', values: at(0.99) },
      ],
      'No attempts for events of this period.',
    ),
  ];
}

const troubledView = modelView(webhookEndpoints, [
  { name: 'endpoint', kind: 'link' },
  { name: 'state', kind: 'state' },
  'failing_since',
  { name: 'consecutive_failures', label: 'Failures in a row', secondary: true },
  { name: 'disabled_at', label: 'Disabled', secondary: true },
]);

async function troubledTable(place: AdminPlace, context: AdminContext): Promise<AdminOverview['tables'][number]> {
  const endpoints = await listTroubledEndpoints(databaseOf(place, context), TROUBLED_MAX);
  const hindrances = await ownerHindrances(place, context, endpoints);
  return {
    kind: 'table',
    title: 'Endpoints that fail or are disabled',
    urgent: endpoints.length > 0,
    columns: troubledView.columns,
    rows: endpoints.map((endpoint) => ({
      id: endpoint.id,
      title: shownUrl(endpoint.url),
      values: troubledView.values(endpoint, {
        endpoint: link(place, 'endpoints', endpoint.id, shownUrl(endpoint.url)),
        state: endpointState(endpoint, hindrances.get(endpoint.id)),
      }),
    })),
    empty: 'No endpoint fails or is disabled.',
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
