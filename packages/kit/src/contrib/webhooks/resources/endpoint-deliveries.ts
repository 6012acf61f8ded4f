import { filter } from '../../../crud/declare/filter.ts';
import { count } from '../../../crud/declare/metric.ts';
import { CrudController } from '../../../crud/serve/controller.ts';
import { databaseNamed } from '../../../db/open/named-database.ts';
import { whereSql } from '../../../db/sql/where/where-sql.ts';
import { uuidv7LowerBound } from '../../../db/values/uuidv7.ts';
import type { Where } from '../../../db/sql/where/where.ts';
import type { ControllerBase } from '../../../http/compile/controller.ts';
import { jsonSchema } from '../../../http/declare/json-schema.ts';
import { route } from '../../../http/declare/route.ts';
import { hasScopes } from '../../../permissions/built-ins.ts';
import type { Throttle } from '../../../throttle/throttle.ts';
import { EVENT_TYPE_LENGTH_MAX } from '../publishing/subscription.ts';
import { deliveryDetail } from '../endpoints/endpoint-record.ts';
import { attemptsOf, findEvent, type WebhookDelivery } from '../endpoints/store.ts';
import { webhookErrors } from '../errors.ts';
import { DELIVERY_STATUSES, type webhookDeliveries } from '../models.ts';
import { DeliveryDetailOut } from '../schemas.ts';
import { deliveryResource } from './deliveries.ts';

type Status = WebhookDelivery['status'];

/** `failed` has the words of the index `webhook_deliveries_failed_of_endpoint`: only a statement with the same words can use it. */
const FAILED = whereSql("this.status <> 'pending' and this.status <> 'succeeded'") as Where<(typeof webhookDeliveries)['columns']>;

interface OfEndpoints {
  readonly using: string;
  readonly liveDeliveries: boolean;
}

/** The deliveries of an endpoint, for the controller of endpoints: in its database, and retried no more often than it allows. */
export function endpointDeliveries({ using, liveDeliveries: live }: OfEndpoints, throttles: readonly Throttle[]): ControllerBase {
  const permission = hasScopes({ allowUnscoped: true });
  const notFound = [webhookErrors.endpoint_not_found, webhookErrors.delivery_not_found] as const;

  const OfEndpoint = CrudController(deliveryResource, {
    permission,
    scope: 'webhooks',
    using,
    parent: { relation: 'endpoint' },
    live,
    filters: {
      status: filter(jsonSchema<Status>({ type: 'string', enum: [...DELIVERY_STATUSES] }), (status) =>
        status === 'failed' ? FAILED : { status },
      ),
      // Of one endpoint, by its index. One with the type would be written with each delivery and each of its results: a quarter more of the table, for a
      // rare type among 200 000 deliveries of one endpoint.
      event_type: filter(jsonSchema<string>({ type: 'string', maxLength: EVENT_TYPE_LENGTH_MAX }), (type) => ({ event_type: type })),
      event_id: ['eq'],
      since: filter(
        jsonSchema<string>({ type: 'string', format: 'date-time' }),
        (at) => ({ id: { gte: uuidv7LowerBound(new Date(at)) } }),
        {
          description: 'Created at this time or later.',
        },
      ),
    },
    stats: { by: ['created_at', 'status', 'event_type'], metrics: { deliveries: count() } },
    output: [
      'id',
      'event_id',
      'event_type',
      'status',
      'attempts',
      'next_attempt_at',
      'last_status_code',
      'last_error',
      'failure_reason',
      'delivered_at',
      'created_at',
    ],
    queryMethod: false,
    page: { default: 100, max: 100, count: { upTo: 10_000 }, keyCursors: true },
    operations: {
      list: { summary: 'List the deliveries of a webhook endpoint, newest first', raises: [webhookErrors.endpoint_not_found] },
      stats: { raises: [webhookErrors.endpoint_not_found] },
      retrieve: false,
      create: false,
      update: false,
      partialUpdate: false,
      destroy: false,
      retry: {
        throttles,
        description: 'The receiver may have processed it already; it deduplicates on `webhook-id`.',
        raises: [webhookErrors.endpoint_not_found],
      },
    },
  });

  class EndpointDeliveries extends OfEndpoint {
    delivery = route.get(
      '/:id',
      {
        permission,
        scope: 'webhooks:read',
        params: this.keyParams,
        response: DeliveryDetailOut,
        raises: notFound,
        summary: 'Read a delivery, its payload and attempts',
      },
      async (context) => {
        const [delivery] = await this.rows(context, { id: context.params.id.toLowerCase() }, 1);
        const db = databaseNamed(context.databases, using, 'using');
        const event = delivery === undefined ? null : await findEvent(db, delivery.event_id);
        if (delivery === undefined || event === null) throw webhookErrors.delivery_not_found();
        return deliveryDetail(delivery, event, await attemptsOf(db, delivery.id));
      },
    );
  }
  return new EndpointDeliveries();
}
