// The page of an endpoint.
import type { AdminContext } from '../../../app/admin/declaration.ts';
import { groupDigits } from '../../../app/admin/group-digits.ts';
import { modelView } from '../../../app/admin/model-view.ts';
import { adminBuckets } from '../../../app/admin/range.ts';
import type { AdminSection } from '../../../app/admin/sections.ts';
import type { AdminRange } from '../../../app/admin/shapes.ts';
import type { Db } from '../../../db/engine/db.ts';
import { webhookDeliveries } from '../models.ts';
import { reasonOf } from './delivery-states.ts';
import { link, type AdminPlace } from './place.ts';
import { attemptsOfEndpoint, HEALTH_DELIVERIES_MAX, lastErrorsOf } from './store.ts';

/** The list of deliveries has the rest. */
const ERRORS_MAX = 10;

export async function healthChart({ clock }: AdminContext, db: Db, id: string, range: AdminRange): Promise<AdminSection> {
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

const errorView = modelView(webhookDeliveries, [
  { name: 'delivery', kind: 'link' },
  { name: 'reason', label: 'Failure', kind: 'text' },
  { name: 'last_error', label: 'Error' },
  { name: 'created_at', label: 'Published', secondary: true },
]);

export async function lastErrors(place: AdminPlace, db: Db, id: string): Promise<AdminSection> {
  const deliveries = await lastErrorsOf(db, id, ERRORS_MAX);
  return {
    kind: 'table',
    title: 'Last errors',
    columns: errorView.columns,
    rows: deliveries.map((delivery) => ({
      id: delivery.id,
      title: delivery.event_type,
      values: errorView.values(delivery, {
        delivery: link(place, 'deliveries', delivery.id, delivery.event_type),
        reason: reasonOf(delivery.failure_reason),
      }),
    })),
    empty: 'None of its newest deliveries has an error.',
    more: { resource: `deliveries${place.suffix}`, filters: { endpoint: id } },
  };
}
