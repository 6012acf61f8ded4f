import { adminDone, adminEach, isUuid, type AdminResource } from '../../../app/index.ts';
import type { AdminColumn, AdminRow, AdminSection } from '../../../app/admin/shapes.ts';
import { databaseOf, deliveryState, iso, link, shownUrl, type AdminPlace } from './place.ts';
import { listDeliveriesForAdmin, type ListedDelivery } from './store.ts';
import { deliveryRecord, eventData } from '../endpoints/endpoint-record.ts';
import { webhookErrors } from '../errors.ts';
import { DELIVERY_STATUSES, FAILURE_REASONS } from '../models.ts';
import { retryDelivery } from '../delivery/retry.ts';
import { USER_AGENT } from '../delivery/sender.ts';
import { attemptsOf, findDelivery, findEndpoint, findEvent, type WebhookAttempt, type WebhookEvent } from '../store.ts';

export const deliveryColumns: readonly AdminColumn[] = [
  { name: 'event', label: 'Event', kind: 'link' },
  { name: 'endpoint', label: 'Endpoint', kind: 'link' },
  { name: 'status', label: 'Status', kind: 'state' },
  { name: 'attempts', label: 'Attempts', kind: 'number', secondary: true },
  { name: 'last_status_code', label: 'Answer', kind: 'number', secondary: true },
  { name: 'next_attempt_at', label: 'Next attempt', kind: 'time', secondary: true },
  { name: 'created_at', label: 'Published', kind: 'time' },
];

const choices = (values: readonly string[]) => values.map((value) => ({ value, label: sentence(value) }));

export function deliveriesResource(place: AdminPlace): AdminResource {
  return {
    name: `deliveries${place.suffix}`,
    label: `Deliveries${place.label}`,
    singular: 'delivery',
    group: 'Webhooks',
    icon: 'delivery',
    auditedAs: 'webhook_delivery',
    live: true,
    columns: deliveryColumns,
    filters: [
      { name: 'status', label: 'Status', kind: 'select', choices: choices(DELIVERY_STATUSES) },
      { name: 'reason', label: 'Failure', kind: 'select', choices: choices(FAILURE_REASONS) },
      { name: 'event_type', label: 'Event type', kind: 'text' },
      { name: 'endpoint', label: 'Endpoint id', kind: 'text' },
      { name: 'event', label: 'Event id', kind: 'text' },
      { name: 'since', label: 'Published since', kind: 'time' },
      { name: 'until', label: 'Published before', kind: 'time' },
    ],
    searches: 'delivery id, event id or webhook-id',
    creation: { refused: 'Deliveries come from published events. "Send a ping" on an endpoint makes one to test with.' },
    editable: false,
    removable: false,
    actions: [
      {
        name: 'send-again',
        label: 'Send again',
        tone: 'neutral',
        on: 'selection',
        confirm:
          'Each is queued with its whole retry budget, also those that have succeeded. The receiver may have processed them already; it can tell by the webhook-id, which stays the same.',
        async run(context, ids) {
          const db = databaseOf(place, context);
          const result = await adminEach(context, ids, async (id) => {
            if (!isUuid(id)) throw webhookErrors.delivery_not_found();
            await db.transaction(async (tx) => {
              const before = await findDelivery(tx, id);
              const after = await retryDelivery(tx, id, { force: true });
              await context.audit?.record(tx, [
                {
                  actor: context.principal,
                  action: 'webhook_delivery.sent_again',
                  target_type: 'webhook_delivery',
                  target_id: id,
                  before: before === null ? null : deliveryRecord(before),
                  after: deliveryRecord(after),
                  request_id: context.requestId,
                },
              ]);
            });
          });
          return adminDone(result, ['delivery', 'deliveries'], 'queued again');
        },
      },
    ],
    async list(context, query) {
      const { rows, count, next } = await listDeliveriesForAdmin(databaseOf(place, context), query);
      return { items: rows.map((delivery) => deliveryRow(place, delivery)), count, next };
    },
    async read(context, id) {
      const db = databaseOf(place, context);
      const delivery = isUuid(id) ? await findDelivery(db, id) : null;
      const [endpoint, event] =
        delivery === null ? [null, null] : [await findEndpoint(db, delivery.endpoint_id), await findEvent(db, delivery.event_id)];
      if (delivery === null || endpoint === null || event === null) return null;
      const listed = { ...delivery, url: endpoint.url };
      const row = deliveryRow(place, listed);
      const attempts = await attemptsOf(db, delivery.id);
      return {
        ...row,
        state: deliveryState(delivery),
        sections: [factsOf(listed, row), requestOf(listed, event), bodyOf(event), attemptsSection(attempts)],
        actions: ['send-again'],
        removable: false,
      };
    },
  };
}

export function deliveryRow(place: AdminPlace, delivery: ListedDelivery): AdminRow {
  return {
    id: delivery.id,
    title: `${delivery.event_type} to ${shownUrl(delivery.url)}`,
    values: {
      event: link(place, 'events', delivery.event_id, delivery.event_type),
      endpoint: link(place, 'endpoints', delivery.endpoint_id, shownUrl(delivery.url)),
      delivery: link(place, 'deliveries', delivery.id, delivery.event_type),
      status: deliveryState(delivery),
      attempts: delivery.attempts,
      last_status_code: delivery.last_status_code,
      last_error: delivery.last_error,
      next_attempt_at: iso(delivery.next_attempt_at),
      created_at: delivery.created_at.toISOString(),
    },
  };
}

function factsOf(delivery: ListedDelivery, row: AdminRow): AdminSection {
  return {
    kind: 'facts',
    title: 'Delivery',
    columns: [
      ...deliveryColumns,
      { name: 'delivered_at', label: 'Delivered', kind: 'time' },
      { name: 'failure_reason', label: 'Failure', kind: 'text' },
      { name: 'last_error', label: 'Last error', kind: 'text' },
      { name: 'ordering_key', label: 'Ordering key', kind: 'code' },
      { name: 'sending', label: 'Being sent until', kind: 'time' },
      { name: 'id', label: 'Id', kind: 'code' },
    ],
    values: {
      ...row.values,
      delivered_at: iso(delivery.delivered_at),
      failure_reason: delivery.failure_reason,
      ordering_key: delivery.ordering_key,
      // The claim's token is its worker's alone; that there is one, and until when, is what operators need.
      sending: iso(delivery.claimed_until),
      id: delivery.id,
    },
  };
}

/** What every attempt sends alike. The signature is computed for each and not stored, so there is none to show. */
function requestOf({ url }: ListedDelivery, event: WebhookEvent): AdminSection {
  const headers = [
    `POST ${shownUrl(url)}`,
    'content-type: application/json',
    `user-agent: ${USER_AGENT}`,
    `webhook-id: msg_${event.id}`,
    'webhook-timestamp: <the second of the attempt>',
    'webhook-signature: <computed for each attempt, not stored>',
  ];
  return { kind: 'text', title: 'Request', text: headers.join('\n'), code: true };
}

function bodyOf(event: WebhookEvent): AdminSection {
  const { type, timestamp, data } = event;
  return { kind: 'json', title: 'Body', value: { type, timestamp: timestamp.toISOString(), data: eventData(event) ?? data } };
}

function attemptsSection(attempts: readonly WebhookAttempt[]): AdminSection {
  return {
    kind: 'table',
    title: 'Attempts',
    columns: [
      { name: 'started_at', label: 'Started', kind: 'time' },
      { name: 'outcome', label: 'Outcome', kind: 'state' },
      { name: 'status_code', label: 'Answer', kind: 'number' },
      { name: 'duration', label: 'Took', kind: 'duration' },
      { name: 'error', label: 'Error', kind: 'text', secondary: true },
      { name: 'worker', label: 'Worker', kind: 'code', secondary: true },
    ],
    rows: attempts.toReversed().map((attempt) => ({
      id: attempt.id,
      title: attempt.started_at.toISOString(),
      values: {
        started_at: attempt.started_at.toISOString(),
        outcome:
          attempt.failure_reason === null
            ? { value: 'succeeded', tone: 'good' }
            : { value: attempt.failure_reason, tone: 'bad', ...(attempt.error === null ? {} : { hint: attempt.error }) },
        status_code: attempt.status_code,
        duration: attempt.duration_ms,
        error: attempt.error,
        worker: attempt.worker,
      },
      details: detailsOf(attempt),
    })),
    empty: 'Nothing was sent yet.',
  };
}

function detailsOf({ started_at, error, response_excerpt }: WebhookAttempt): readonly AdminSection[] {
  const text = response_excerpt === null || response_excerpt === '' ? 'No body.' : response_excerpt;
  return [
    {
      kind: 'text',
      title: 'Sent with',
      text: `webhook-timestamp: ${Math.floor(started_at.getTime() / 1000)}`,
      code: true,
    },
    ...(error === null ? [] : [{ kind: 'text', title: 'Error', text: error } as const]),
    { kind: 'text', title: 'Response body, its first 4 KiB', text, code: true },
  ];
}

function sentence(value: string): string {
  const words = value.replaceAll('_', ' ');
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
}
