import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import { adminCount, adminDone, adminEach } from '../../../app/admin/each.ts';
import { iso } from '../../../app/admin/iso.ts';
import { requestFilter } from '../../../app/admin/list.ts';
import { isUuid } from '../../../db/values/uuid.ts';
import type { AdminAction, AdminContext, AdminResource } from '../../../app/admin/declaration.ts';
import type { AdminNotice, AdminSection, AdminTimelineEntry } from '../../../app/admin/sections.ts';
import type { AdminRow } from '../../../app/admin/shapes.ts';
import type { Db } from '../../../db/engine/db.ts';
import { attemptView, deliveryList } from './lists.ts';
import { databaseOf, deliveryState, FAILURES, link, reasonOf, shownUrl, type AdminPlace } from './place.ts';
import { DELIVERY_STATES, listDeliveriesForAdmin, namesOf, publishedTypes, withProgress, type ListedDelivery } from './store.ts';
import { deliveryRecord, eventData } from '../endpoints/endpoint-record.ts';
import { webhookErrors } from '../errors.ts';
import { heldBehind } from '../endpoints/held-store.ts';
import { FAILURE_REASONS } from '../models.ts';
import { retryDelivery } from '../maintain/retry.ts';
import { USER_AGENT } from '../delivery/sender.ts';
import type { RetrySchedule } from '../endpoints/retry-schedule.ts';
import { webhooksOf } from '../webhooks.ts';
import {
  attemptsOf,
  findDelivery,
  findEndpoint,
  findEvent,
  type WebhookAttempt,
  type WebhookEndpoint,
  type WebhookEvent,
} from '../endpoints/store.ts';
import { groupDigits } from '../../../app/admin/group-digits.ts';

const STATE_LABELS: Readonly<Record<(typeof DELIVERY_STATES)[number], string>> = {
  waiting: 'Waiting (not finished)',
  pending: 'Pending',
  retrying: 'Retrying',
  held: 'Held',
  no_audience: 'No audience',
  succeeded: 'Succeeded',
  failed: 'Failed',
};

export function deliveriesResource(place: AdminPlace): AdminResource {
  return {
    name: `deliveries${place.suffix}`,
    label: `Deliveries${place.label}`,
    singular: 'delivery',
    group: 'Webhooks',
    icon: 'delivery',
    auditedAs: 'webhook_delivery',
    live: true,
    columns: deliveryList.columns,
    filters: [
      { name: 'status', label: 'Status', kind: 'select', choices: DELIVERY_STATES.map((value) => ({ value, label: STATE_LABELS[value] })) },
      { name: 'reason', label: 'Failure', kind: 'select', choices: FAILURE_REASONS.map((value) => ({ value, label: FAILURES[value] })) },
      { name: 'event_type', label: 'Event type', kind: 'text', suggestions: place.eventTypes },
      { name: 'endpoint', label: 'Endpoint', kind: 'reference', of: `endpoints${place.suffix}` },
      { name: 'event', label: 'Event id', kind: 'text' },
      { name: 'record', label: 'Record, such as order:<id>', kind: 'text' },
      { name: 'published', label: 'Published', kind: 'time', ends: ['since', 'until'] },
      requestFilter,
    ],
    suggestions: async (context) => ({ event_type: await publishedTypes(databaseOf(place, context)) }),
    searches: 'delivery id, event id or webhook-id',
    creation: { refused: 'Deliveries come from published events. "Send a ping" on an endpoint makes one to test with.' },
    editable: false,
    removable: false,
    actions: [sendAgain(place), sendEarlier(place)],
    shortcuts: [{ label: 'Retry failed deliveries', filters: { status: 'failed' }, action: 'send-again' }],
    async list(context, query) {
      const { rows, ...page } = await listDeliveriesForAdmin(databaseOf(place, context), query);
      return { ...page, items: rows.map((delivery) => deliveryRow(place, delivery)) };
    },
    related: [
      { to: '*', filter: 'record' },
      { to: 'request', filter: requestFilter.name },
    ],
    refers: { endpoint_id: 'webhook_endpoint', event_id: 'webhook_event' },
    titles: async (context, ids) =>
      new Map(
        (await namesOf(databaseOf(place, context), 'deliveries', ids)).map(({ id, url, type }) => [id, `${type} to ${shownUrl(url)}`]),
      ),
    async read(context, id) {
      const db = databaseOf(place, context);
      const delivery = isUuid(id) ? await findDelivery(db, id) : null;
      const [endpoint, event] =
        delivery === null ? [null, null] : [await findEndpoint(db, delivery.endpoint_id), await findEvent(db, delivery.event_id)];
      if (delivery === null || endpoint === null || event === null) return null;
      const [listed] = await withProgress(db, [{ ...delivery, url: endpoint.url }]);
      if (listed === undefined) return null;
      const row = deliveryRow(place, listed);
      const attempts = await attemptsOf(db, delivery.id);
      const notice = noticeOf(place, listed, endpoint);
      return {
        ...row,
        state: deliveryState(listed, listed.waitsFor !== null),
        ...(notice === null ? {} : { notice }),
        sections: [
          factsOf(place, listed, row),
          timelineOf(listed, attempts, endpoint.schedule ?? webhooksOf(db).settings.schedule),
          requestOf(listed, event),
          bodyOf(event),
          attemptsSection(listed, attempts),
          curlOf(listed, event),
        ],
        actions: !endpoint.is_active ? [] : [listed.waitsFor === null ? 'send-again' : 'send-earlier'],
        removable: false,
      };
    },
  };
}

const WORDS = ['delivery', 'deliveries'] as const;

function sendAgain(place: AdminPlace): AdminAction {
  return {
    name: 'send-again',
    dryRun: 'sent again',
    label: 'Send again',
    tone: 'neutral',
    on: 'selection',
    confirm: {
      one: 'It is queued with a new retry schedule, even if it has succeeded. The receiver can detect the duplicate by its webhook-id.',
      many: 'Each is queued with a new retry schedule, even if it has succeeded. The receiver can detect duplicates by their webhook-id.',
    },
    async run(context, ids) {
      const db = databaseOf(place, context);
      const result = await adminEach(context, ids, (id) => queueAgain(context, db, id));
      const failed = new Set(result.failures.map(({ id }) => id));
      const queued = ids.filter((id) => !failed.has(id)).map((id) => ({ id }));
      const held = await countHeld(db, queued);
      const { message, ...rest } = adminDone(result, WORDS, 'queued again');
      return { message: held === 0 ? message : `${message} ${adminCount(held, WORDS)} of them must wait for an earlier one.`, ...rest };
    },
    async preview({ databases }, ids) {
      const held = await countHeld(
        databaseOf(place, { databases }),
        ids.filter(isUuid).map((id) => ({ id })),
      );
      if (held === 0) return null;
      const verb = held === 1 ? 'waits' : 'wait';
      return {
        message: `${adminCount(held, WORDS)} of ${ids.length} ${verb} for an earlier one with the same ordering key. Send that one instead.`,
        tone: 'warning',
      };
    },
  };
}

/** Of what is held: the delivery that holds it up. */
function sendEarlier(place: AdminPlace): AdminAction {
  return {
    name: 'send-earlier',
    label: 'Send the earlier one now',
    tone: 'neutral',
    on: 'selection',
    confirm:
      'The delivery that blocks this delivery is queued with a new retry schedule. The others with its ordering key follow in order when it has succeeded or failed permanently.',
    confirmLabel: 'Send the earlier one',
    async run(context, ids) {
      const db = databaseOf(place, context);
      const sent = new Set<string>();
      const result = await adminEach(context, ids, async (id) => {
        const held = isUuid(id) ? await findDelivery(db, id) : null;
        if (held === null) throw webhookErrors.delivery_not_found();
        const earlier = (await heldBehind(db, [held])).get(id)?.id;
        if (earlier === undefined) throw webhookErrors.delivery_pending({ detail: 'It does not wait for an earlier delivery.' });
        if (sent.has(earlier)) return;
        await queueAgain(context, db, earlier);
        sent.add(earlier);
      });
      return {
        ...adminDone(result, WORDS, 'done'),
        message: `${adminCount(sent.size, ['earlier delivery', 'earlier deliveries'])} queued again.`,
      };
    },
  };
}

async function queueAgain(context: AdminContext, db: Db, id: string): Promise<void> {
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
  }, CONFLICT_RETRIES);
}

async function countHeld(db: Db, deliveries: readonly { readonly id: string }[]): Promise<number> {
  const pending = deliveries.map(({ id }) => ({ id, status: 'pending', ordering_key: '' }) as const);
  const held = await heldBehind(db, pending);
  return held.size;
}

/** Why nothing is sent, and what to do about it. */
function noticeOf(place: AdminPlace, delivery: ListedDelivery, endpoint: Pick<WebhookEndpoint, 'is_active'>): AdminNotice | null {
  if (delivery.status !== 'pending') return null;
  if (delivery.waitsFor !== null)
    return {
      tone: 'warning',
      text: `Nothing is sent yet: deliveries with the ordering key ${delivery.ordering_key ?? ''} go one after the other. It waits for`,
      link: link(place, 'deliveries', delivery.waitsFor.id, `${delivery.waitsFor.event_type} (earlier)`),
    };
  if (delivery.next_attempt_at === null)
    return {
      tone: 'warning',
      text: 'Nothing is sent yet: the event has no audience. Assign one on the page of',
      link: link(place, 'events', delivery.event_id, delivery.event_type),
    };
  if (!endpoint.is_active)
    return { tone: 'bad', text: 'The endpoint is disabled:', link: link(place, 'endpoints', delivery.endpoint_id, shownUrl(delivery.url)) };
  return null;
}

export function deliveryRow(place: AdminPlace, delivery: ListedDelivery): AdminRow {
  return {
    id: delivery.id,
    title: `${delivery.event_type} to ${shownUrl(delivery.url)}`,
    values: deliveryList.values(delivery, {
      event: link(place, 'events', delivery.event_id, delivery.event_type),
      endpoint: link(place, 'endpoints', delivery.endpoint_id, shownUrl(delivery.url)),
      delivery: link(place, 'deliveries', delivery.id, delivery.event_type),
      status: deliveryState(delivery, delivery.waitsFor !== null),
      attempts: delivery.made,
      last_error: delivery.last_error,
      next_attempt_at: delivery.waitsFor === null ? iso(delivery.next_attempt_at) : null,
      record: delivery.ordering_key,
      request_id: delivery.request_id ?? null,
    }),
  };
}

function factsOf(place: AdminPlace, delivery: ListedDelivery, row: AdminRow): AdminSection {
  const { waitsFor } = delivery;
  const values = {
    ...row.values,
    budget: delivery.attempts,
    waits_for: waitsFor === null ? null : link(place, 'deliveries', waitsFor.id, `${waitsFor.event_type} (earlier)`),
    failure_reason: reasonOf(delivery.failure_reason),
  };
  return deliveryList.facts('Delivery', delivery, values, [
    { name: 'budget', label: 'Attempts in this retry schedule', kind: 'number' },
    ...(waitsFor === null ? [] : [{ name: 'waits_for', kind: 'link' } as const]),
    { name: 'delivered_at', label: 'Delivered' },
    { name: 'failure_reason', label: 'Failure', kind: 'text' },
    'last_error',
    { name: 'ordering_key', kind: 'code' },
    // The claim's token is its worker's alone; that there is one, and until when, is what operators need.
    'claimed_until',
    'id',
  ]);
}

/** What every attempt sends alike. The signature is computed for each and not stored, so there is none to show. */
function requestOf({ url }: ListedDelivery, event: WebhookEvent): AdminSection {
  const headers = [
    `POST ${url}`,
    'content-type: application/json',
    `user-agent: ${USER_AGENT}`,
    `webhook-id: msg_${event.id}`,
    'webhook-timestamp: <the second of the attempt>',
    'webhook-signature: <computed for each attempt, not stored>',
  ];
  return { kind: 'text', title: 'Request', text: headers.join('\n'), code: true };
}

/** Every attempt that was made, and those that the schedule still plans. */
function timelineOf(delivery: ListedDelivery, attempts: readonly WebhookAttempt[], schedule: RetrySchedule): AdminSection {
  const made = attempts.map((attempt, index): AdminTimelineEntry => {
    const answer = attempt.status_code === null ? '' : ` with ${attempt.status_code}`;
    return {
      at: attempt.started_at.toISOString(),
      title: attempt.failure_reason === null ? `Attempt ${index + 1} succeeded${answer}` : `Attempt ${index + 1} failed${answer}`,
      tone: attempt.failure_reason === null ? 'good' : 'bad',
      text: `Took ${groupDigits(attempt.duration_ms)} ms.${attempt.error === null ? '' : ` ${attempt.error}`}`,
    };
  });
  return {
    kind: 'timeline',
    title: 'Timeline',
    entries: [
      { at: delivery.created_at.toISOString(), title: 'Event published', tone: 'info' },
      ...made,
      ...plannedOf(delivery, made.length, schedule),
      ...(delivery.status === 'failed'
        ? [{ at: null, title: 'Failed permanently', tone: 'bad', text: 'It is not retried automatically.' } as const]
        : []),
    ],
  };
}

/** Times are the earliest ones: jitter and a longer `Retry-After` move them back. */
function plannedOf(delivery: ListedDelivery, made: number, schedule: RetrySchedule): AdminTimelineEntry[] {
  const { status, next_attempt_at: next, attempts, waitsFor } = delivery;
  if (status !== 'pending') return [];
  if (waitsFor !== null || next === null)
    return [
      {
        at: null,
        title: `Attempt ${made + 1}`,
        tone: 'neutral',
        planned: true,
        text: waitsFor === null ? 'When the event has an audience.' : 'When the earlier delivery has ended.',
      },
    ];
  const entries: AdminTimelineEntry[] = [];
  let at = next.getTime();
  for (let budget = attempts; budget <= schedule.length; budget += 1) {
    entries.push({ at: new Date(at).toISOString(), title: `Attempt ${made + entries.length + 1}`, tone: 'neutral', planned: true });
    at += (schedule[budget] ?? 0) * 1000;
  }
  return [...entries, { at: null, title: 'Failed permanently if none of them succeeds', tone: 'neutral', planned: true }];
}

/** A request like ours, to paste into a shell. Signatures need the secret, so there is none. */
function curlOf({ url }: ListedDelivery, event: WebhookEvent): AdminSection {
  const body = `{"type":${JSON.stringify(event.type)},"timestamp":"${event.timestamp.toISOString()}","data":${event.data}}`;
  const lines = [
    `curl -X POST ${quoted(url)}`,
    `  -H 'content-type: application/json'`,
    `  -H ${quoted(`webhook-id: msg_${event.id}`)}`,
    `  --data-raw ${quoted(body)}`,
  ];
  return { kind: 'text', title: 'As curl, without a signature', text: lines.join(' \\\n'), code: true };
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function bodyOf(event: WebhookEvent): AdminSection {
  const { type, timestamp, data } = event;
  return { kind: 'json', title: 'Body', value: { type, timestamp: timestamp.toISOString(), data: eventData(event) ?? data } };
}

function attemptsSection({ waitsFor }: ListedDelivery, attempts: readonly WebhookAttempt[]): AdminSection {
  return {
    kind: 'table',
    title: 'Attempts',
    columns: attemptView.columns,
    rows: attempts.toReversed().map((attempt) => ({
      id: attempt.id,
      title: attempt.started_at.toISOString(),
      values: attemptView.values(attempt, {
        duration: attempt.duration_ms,
        outcome:
          attempt.failure_reason === null
            ? { value: 'succeeded', tone: 'good' }
            : { value: FAILURES[attempt.failure_reason], tone: 'bad', ...(attempt.error === null ? {} : { hint: attempt.error }) },
      }),
      details: detailsOf(attempt),
    })),
    empty: waitsFor === null ? 'Nothing was sent yet.' : 'Nothing was sent yet: it waits for an earlier delivery.',
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
