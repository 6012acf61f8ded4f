// The page of an endpoint.
import type { AdminContext } from '../../../app/admin/declaration.ts';
import { iso } from '../../../app/admin/iso.ts';
import { adminBuckets } from '../../../app/admin/range.ts';
import type { AdminSection } from '../../../app/admin/sections.ts';
import type { AdminColumn, AdminRange, AdminRow } from '../../../app/admin/shapes.ts';
import type { Db } from '../../../db/engine/db.ts';
import { newestDeliveriesOf, type WaitingOfEndpoint } from '../endpoints/management-store.ts';
import type { WebhookDelivery } from '../endpoints/store.ts';
import { deliveryRow } from './deliveries.ts';
import { deliveryList, endpointList } from './lists.ts';
import type { AdminPlace } from './place.ts';
import { attemptsOfEndpoint, HEALTH_DELIVERIES_MAX, lastErrorsOf, withProgress, type ShownEndpoint } from './store.ts';
import { groupDigits } from '../../../app/admin/group-digits.ts';

/** Deliveries and errors on the page of their endpoint; the list has the rest. */
const RECENT_MAX = 10;

export function factsOf(endpoint: ShownEndpoint, row: AdminRow, { waiting, next }: WaitingOfEndpoint): AdminSection {
  const delays = endpoint.schedule?.map((seconds) => `${seconds} s`).join(', ') ?? 'those of the application';
  return endpointList.facts('Endpoint', endpoint, { ...row.values, waiting, next_attempt_at: iso(next), schedule: delays }, [
    { name: 'waiting', label: 'Waiting deliveries', kind: 'number' },
    { name: 'next_attempt_at', label: 'Next attempt', kind: 'time' },
    'failing_since',
    { name: 'consecutive_failures', label: 'Failures in a row' },
    { name: 'disabled_at', label: 'Disabled' },
    { name: 'signature', kind: 'code' },
    { name: 'public_key', kind: 'code' },
    { name: 'previous_secret_expires_at', label: 'Old secret signs until' },
    { name: 'schedule', label: 'Retry delays', kind: 'text' },
    { name: 'header_names', label: 'Custom headers' },
    'rate_limit',
    { name: 'send_traceparent', label: 'Sends the trace' },
    { name: 'updated_at', label: 'Changed' },
    'id',
  ]);
}

export async function health({ clock }: AdminContext, db: Db, id: string, range: AdminRange): Promise<AdminSection> {
  const buckets = adminBuckets(range, clock.now());
  const counted = await attemptsOfEndpoint(db, id, buckets);
  const of = (name: 'succeeded' | 'failed') =>
    buckets.starts.map((_, index) => counted.find(({ bucket }) => bucket === index)?.[name] ?? 0);
  return {
    kind: 'chart',
    chart: {
      title: `Attempts (of up to ${groupDigits(HEALTH_DELIVERIES_MAX)} deliveries)`,
      kind: 'bars',
      unit: 'count',
      buckets: buckets.starts.map((start) => start.toISOString()),
      series: [
        { name: 'Succeeded', tone: 'good', values: of('succeeded') },
        { name: 'Failed', tone: 'bad', values: of('failed') },
      ],
      empty: 'Nothing was sent in this time.',
    },
  };
}

const recentColumns = [
  { name: 'delivery', label: 'Delivery', kind: 'link' } as const,
  ...deliveryList.columns.filter(({ name }) => name !== 'endpoint' && name !== 'event'),
];

export async function recent(place: AdminPlace, db: Db, endpoint: ShownEndpoint): Promise<AdminSection> {
  const deliveries = await newestDeliveriesOf(db, endpoint.id, RECENT_MAX);
  return deliveryTable(place, db, endpoint, deliveries, {
    title: 'Recent deliveries',
    columns: recentColumns,
    empty: 'Nothing was published to it yet.',
  });
}

export async function lastErrors(place: AdminPlace, db: Db, endpoint: ShownEndpoint): Promise<AdminSection> {
  const deliveries = await lastErrorsOf(db, endpoint.id, RECENT_MAX);
  const shown = [...recentColumns, { name: 'last_error', label: 'Error', kind: 'text' } as const];
  return deliveryTable(place, db, endpoint, deliveries, {
    title: 'Last errors',
    columns: shown,
    empty: 'None of its newest deliveries has an error.',
  });
}

async function deliveryTable(
  place: AdminPlace,
  db: Db,
  { id, url }: ShownEndpoint,
  deliveries: readonly WebhookDelivery[],
  table: { readonly title: string; readonly columns: readonly AdminColumn[]; readonly empty: string },
): Promise<AdminSection> {
  const listed = await withProgress(
    db,
    deliveries.map((delivery) => Object.assign(delivery, { url })),
  );
  return {
    kind: 'table',
    ...table,
    rows: listed.map((delivery) => deliveryRow(place, delivery)),
    more: { resource: `deliveries${place.suffix}`, filters: { endpoint: id } },
  };
}
