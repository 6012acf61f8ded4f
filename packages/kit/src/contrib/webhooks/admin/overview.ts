import { adminBuckets, type AdminBuckets, type AdminContext } from '../../../app/index.ts';
import type { AdminChart, AdminOverview, AdminRange, AdminTile } from '../../../app/admin/shapes.ts';
import type { Db } from '../../../db/db.ts';
import { countTrouble, readBacklog, sampled, SAMPLE_ROWS_MAX, type Backlog, type TroubleCounts } from './overview-store.ts';
import { databaseOf, endpointState, iso, link, shownUrl, type AdminPlace } from './place.ts';
import { listTroubledEndpoints } from './store.ts';
import { percentile, type Weighted } from './percentile.ts';

const TROUBLED_MAX = 10;
const MINUTE_MS = 60_000;
/** Older than the first retries: something keeps work from being sent. */
const OLD_MS = 30 * MINUTE_MS;

/** What the overview says about webhooks, for the events published in a range of time. */
export function webhooksOverview(place: AdminPlace): (context: AdminContext, range: AdminRange) => Promise<AdminOverview> {
  return async (context, range) => {
    const db = databaseOf(place, context);
    const now = context.clock.now();
    const buckets = adminBuckets(range, now);
    const [events, deliveries, latency, backlog, trouble] = [
      await eventsBy(db, buckets),
      await deliveriesBy(db, buckets),
      await latencyBy(db, buckets),
      await readBacklog(db),
      await countTrouble(db),
    ];
    const estimated = [events, deliveries, latency].some(({ scale }) => scale > 1);
    return {
      title: 'Webhooks',
      tiles: [...trafficTiles(place, events, deliveries, latency, estimated), ...backlogTiles(place, backlog, trouble, now)],
      charts: chartsOf(buckets, events, deliveries, latency, estimated),
      tables: [await troubledTable(place, db)],
    };
  };
}

interface Counted {
  readonly scale: number;
}
type Events = Counted & { readonly counts: readonly number[] };
type Deliveries = Counted & { readonly [Status in 'pending' | 'succeeded' | 'failed']: readonly number[] };
type Latency = Counted & { readonly whole: readonly Weighted[]; readonly buckets: readonly (readonly Weighted[])[] };

async function eventsBy(db: Db, buckets: AdminBuckets): Promise<Events> {
  const { rows, scale } = await sampled<{ count: number | bigint }>(db, 'webhook_events', buckets, { columns: 'count(*) as count' });
  const counts = buckets.starts.map(() => 0);
  for (const { bucket, count } of rows) counts[bucket] = Math.round(Number(count) * scale);
  return { counts, scale };
}

async function deliveriesBy(db: Db, buckets: AdminBuckets): Promise<Deliveries> {
  const { rows, scale } = await sampled<{ status: 'pending' | 'succeeded' | 'failed'; count: number | bigint }>(
    db,
    'webhook_deliveries',
    buckets,
    {
      columns: 't.status, count(*) as count',
      groups: ', t.status',
    },
  );
  const counts = { pending: buckets.starts.map(() => 0), succeeded: buckets.starts.map(() => 0), failed: buckets.starts.map(() => 0) };
  for (const { bucket, status, count } of rows) counts[status][bucket] = Math.round(Number(count) * scale);
  return { ...counts, scale };
}

async function latencyBy(db: Db, buckets: AdminBuckets): Promise<Latency> {
  const { rows, scale } = await sampled<{ duration_ms: number; count: number | bigint }>(db, 'webhook_attempts', buckets, {
    columns: 't.duration_ms, count(*) as count',
    groups: ', t.duration_ms',
  });
  const byBucket = buckets.starts.map((): Weighted[] => []);
  for (const { bucket, duration_ms: value, count } of rows) byBucket[bucket]?.push({ value, weight: Number(count) });
  return { scale, whole: byBucket.flat(), buckets: byBucket };
}

function trafficTiles(place: AdminPlace, events: Events, deliveries: Deliveries, latency: Latency, estimated: boolean): AdminTile[] {
  const [succeeded, failed] = [sum(deliveries.succeeded), sum(deliveries.failed)];
  const rate = succeeded + failed === 0 ? null : (succeeded / (succeeded + failed)) * 100;
  const sample = estimated ? ` Estimated from a sample of about ${SAMPLE_ROWS_MAX.toLocaleString('en')} rows.` : '';
  const deliveriesIn = (status?: string) => ({ resource: `deliveries${place.suffix}`, filters: status === undefined ? {} : { status } });
  const [half, most, nearlyAll] = [0.5, 0.95, 0.99].map((share) => percentile(latency.whole, share));
  const others =
    half === undefined || half === null || nearlyAll === undefined || nearlyAll === null
      ? 'Nothing was sent in the range.'
      : `Of the attempts; half took at most ${spoken(half)}, 99 % at most ${spoken(nearlyAll)}.${sample}`;
  return [
    { label: 'Events', value: sum(events.counts), unit: 'count', tone: 'info', hint: `Published in the range.${sample}` },
    {
      label: 'Deliveries',
      value: succeeded + failed + sum(deliveries.pending),
      unit: 'count',
      tone: 'info',
      hint: `Of events published in the range.${sample}`,
      link: deliveriesIn(),
    },
    {
      label: 'Success rate',
      value: rate === null ? null : Math.round(rate * 100) / 100,
      unit: 'percent',
      tone: rate === null ? 'neutral' : rate >= 99 ? 'good' : rate >= 95 ? 'warning' : 'bad',
      hint: `Of the deliveries that are finished.${sample}`,
    },
    {
      label: 'Failed',
      value: failed,
      unit: 'count',
      tone: failed > 0 ? 'bad' : 'good',
      hint: `For good, unless sent again.${sample}`,
      link: deliveriesIn('failed'),
    },
    { label: 'Latency p95', value: most ?? null, unit: 'ms', tone: 'neutral', hint: others },
  ];
}

function spoken(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

function backlogTiles(place: AdminPlace, backlog: Backlog, trouble: TroubleCounts, now: Date): AdminTile[] {
  const age = backlog.oldest === null ? null : Math.max(0, now.getTime() - backlog.oldest.getTime());
  const more = backlog.complete ? '' : ' More are waiting than are counted.';
  const pending = { resource: `deliveries${place.suffix}`, filters: { status: 'pending' } };
  const endpoints = (state: string) => ({ resource: `endpoints${place.suffix}`, filters: { state } });
  return [
    {
      label: 'Waiting',
      value: backlog.complete ? backlog.pending : `${backlog.pending}+`,
      unit: 'count',
      tone: 'neutral',
      hint: `Now, whatever the range; ${backlog.retrying} of them after a failed attempt.${more}`,
      link: pending,
    },
    {
      label: 'Oldest waiting',
      value: age,
      unit: 'age_ms',
      tone: age !== null && age > OLD_MS ? 'warning' : 'neutral',
      hint: 'If it grows with nothing failing, no worker runs: `kit webhooks deliver --loop`.',
      link: pending,
    },
    {
      label: 'Failing endpoints',
      value: trouble.failing,
      unit: 'count',
      tone: trouble.failing > 0 ? 'warning' : 'good',
      link: endpoints('failing'),
    },
    {
      label: 'Disabled endpoints',
      value: trouble.disabled,
      unit: 'count',
      tone: trouble.disabled > 0 ? 'bad' : 'good',
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
            hint: 'Sent to nobody until somebody says whom they are for.',
            link: { resource: `events${place.suffix}`, filters: { audience: 'none' } },
          } as const,
        ]),
  ];
}

function chartsOf(buckets: AdminBuckets, events: Events, deliveries: Deliveries, latency: Latency, estimated: boolean): AdminChart[] {
  const starts = buckets.starts.map((start) => start.toISOString());
  const suffix = estimated ? ' (estimated)' : '';
  const at = (share: number) => latency.buckets.map((values) => percentile(values, share));
  return [
    {
      title: `Deliveries${suffix}`,
      kind: 'bars',
      unit: 'count',
      buckets: starts,
      series: [
        { name: 'Succeeded', tone: 'good', values: deliveries.succeeded },
        { name: 'Failed', tone: 'bad', values: deliveries.failed },
        { name: 'Waiting', tone: 'info', values: deliveries.pending },
      ],
      empty: 'Nothing was delivered in this time.',
    },
    {
      title: `Events${suffix}`,
      kind: 'bars',
      unit: 'count',
      buckets: starts,
      series: [{ name: 'Published', tone: 'info', values: events.counts }],
      empty: 'Nothing was published in this time.',
    },
    {
      title: `Latency of attempts${suffix}`,
      kind: 'lines',
      unit: 'ms',
      buckets: starts,
      series: [
        { name: 'p50', tone: 'good', values: at(0.5) },
        { name: 'p95', tone: 'warning', values: at(0.95) },
        { name: 'p99', tone: 'bad', values: at(0.99) },
      ],
      empty: 'No attempt was made for events of this time.',
    },
  ];
}

async function troubledTable(place: AdminPlace, db: Db): Promise<AdminOverview['tables'][number]> {
  const endpoints = await listTroubledEndpoints(db, TROUBLED_MAX);
  return {
    kind: 'table',
    title: 'Endpoints that fail or are disabled',
    columns: [
      { name: 'endpoint', label: 'Endpoint', kind: 'link' },
      { name: 'state', label: 'State', kind: 'state' },
      { name: 'failing_since', label: 'Failing since', kind: 'time' },
      { name: 'consecutive_failures', label: 'Failures in a row', kind: 'number', secondary: true },
      { name: 'disabled_at', label: 'Disabled', kind: 'time', secondary: true },
    ],
    rows: endpoints.map((endpoint) => ({
      id: endpoint.id,
      title: shownUrl(endpoint.url),
      values: {
        endpoint: link(place, 'endpoints', endpoint.id, shownUrl(endpoint.url)),
        state: endpointState(endpoint),
        failing_since: iso(endpoint.failing_since),
        consecutive_failures: endpoint.consecutive_failures,
        disabled_at: iso(endpoint.disabled_at),
      },
    })),
    empty: 'All endpoints are well.',
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
