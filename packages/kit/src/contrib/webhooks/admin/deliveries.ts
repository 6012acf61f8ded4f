import type { AdminContext, AdminResource } from '../../../app/admin/declaration.ts';
import { adminCount } from '../../../app/admin/each.ts';
import { groupDigits } from '../../../app/admin/group-digits.ts';
import { modelView } from '../../../app/admin/model-view.ts';
import type { AdminNotice, AdminSection, AdminTimelineEntry } from '../../../app/admin/sections.ts';
import type { Db } from '../../../db/engine/db.ts';
import { whereSql } from '../../../db/sql/where/where-sql.ts';
import type { Where } from '../../../db/sql/where/where.ts';
import { isUuid } from '../../../db/values/uuid.ts';
import { keyTimeFilter } from '../../../screens/key-time.ts';
import { REQUEST_FILTER, requestFilter } from '../../../screens/request-filter.ts';
import { screen } from '../../../screens/screen.ts';
import { section } from '../../../screens/screen-words.ts';
import { USER_AGENT } from '../delivery/sender.ts';
import { eventData } from '../endpoints/endpoint-record.ts';
import { heldBehind } from '../endpoints/held-store.ts';
import type { RetrySchedule } from '../endpoints/retry-schedule.ts';
import { attemptsOf, findEvent, type WebhookAttempt, type WebhookDelivery, type WebhookEvent } from '../endpoints/store.ts';
import { FAILURE_REASONS, webhookAttempts } from '../models.ts';
import { deliveryResource } from '../resources/deliveries.ts';
import { webhooksOf } from '../webhooks.ts';
import { deliveryState, FAILURES, reasonOf, reasonWhere, stateChoices, stateWhere } from './delivery-states.ts';
import { databaseOf, link, shownUrl, type AdminPlace } from './place.ts';
import { progressOf, publishedTypes, type DeliveryProgress } from './store.ts';

const attemptView = modelView(webhookAttempts, [
  { name: 'started_at', label: 'Started' },
  { name: 'outcome', kind: 'state' },
  'status_code',
  { name: 'duration', label: 'Took', kind: 'duration' },
  { name: 'error', secondary: true },
  { name: 'worker', kind: 'code', secondary: true },
]);

type DeliveryRow = WebhookDelivery & DeliveryProgress;

const WORDS = ['delivery', 'deliveries'] as const;
/** Events of one record whose deliveries a list looks at, the newest. */
const RECORD_EVENTS_MAX = 1_000;

/** The deliveries of a database in the admin site. */
export function deliveriesScreen(place: AdminPlace): AdminResource {
  const db = (context: Pick<AdminContext, 'databases'>) => databaseOf(place, context);
  const endpoints = `endpoints${place.suffix}`;
  const events = `events${place.suffix}`;
  return screen(deliveryResource, {
    name: `deliveries${place.suffix}`,
    label: `Deliveries${place.label}`,
    singular: 'delivery',
    plural: 'deliveries',
    group: 'Webhooks',
    icon: 'delivery',
    live: true,
    using: place.database,
    title: 'title',
    state: 'status',
    columns: [
      { name: 'event_type', label: 'Event', kind: 'link' },
      { name: 'endpoint_id', label: 'Endpoint', kind: 'link' },
      { name: 'status', sortNote: 'Cannot be sorted: it is made of several columns.' },
      // Made in all; the column counts those of the current retry schedule.
      { name: 'attempts', sortNote: 'Cannot be sorted: attempts are counted for each record.', secondary: true },
      { name: 'last_status_code', label: 'Status code', secondary: true },
      { name: 'next_attempt_at', label: 'Next attempt', secondary: true },
      { name: 'created_at', label: 'Published', sortable: true, secondary: false },
    ],
    facts: [
      { name: 'budget', label: 'Attempts in this retry schedule', kind: 'number' },
      { name: 'waits_for', label: 'Waits for', kind: 'link', ifSet: true },
      { name: 'delivered_at', label: 'Delivered', ifSet: true },
      { name: 'failure_reason', label: 'Failure', kind: 'text', ifSet: true },
      { name: 'last_error', ifSet: true },
      { name: 'ordering_key', kind: 'code', ifSet: true },
      // The claim's token is its worker's alone; that there is one, and until when, is what operators need.
      { name: 'claimed_until', ifSet: true },
      'id',
    ],
    load: (rows, context) => progressOf(db(context), rows),
    cells: {
      title: (row) => `${row.event_type} to ${shownUrl((row as DeliveryRow).url)}`,
      event_type: ({ event_id, event_type }) => link(place, 'events', event_id, event_type),
      endpoint_id: (row) => link(place, 'endpoints', row.endpoint_id, shownUrl((row as DeliveryRow).url)),
      status: (row) => deliveryState(row, (row as DeliveryRow).waitsFor !== null),
      attempts: (row) => (row as DeliveryRow).made,
      next_attempt_at: (row) =>
        (row as DeliveryRow).waitsFor !== null || row.next_attempt_at === null ? null : isoOf(row.next_attempt_at),
      failure_reason: ({ failure_reason }) => reasonOf(failure_reason),
      // The site finds the deliveries of a record and of a request, and puts them into its timeline.
      record: ({ ordering_key }) => ordering_key,
      request_id: (row) => (row as DeliveryRow).request_id,
    },
    values: (row) => ({ budget: row.attempts, waits_for: earlierLink(place, row as DeliveryRow) }),
    notice: (row) => noticeOf(place, row as DeliveryRow),
    filters: [
      {
        name: 'status',
        column: 'status',
        label: 'Status',
        kind: 'select',
        choices: stateChoices,
        where: (state, context) => stateWhere(db(context), state),
        isIndexed: (state) => state !== 'succeeded',
      },
      {
        name: 'reason',
        column: 'failure_reason',
        label: 'Failure',
        kind: 'select',
        choices: FAILURE_REASONS.map((value) => ({ value, label: FAILURES[value] })),
        where: (reason, context) => reasonWhere(db(context), reason),
        isIndexed: true,
      },
      { column: 'event_type', label: 'Event type', suggestions: place.eventTypes },
      { column: 'endpoint_id', name: 'endpoint', label: 'Endpoint', of: endpoints },
      { column: 'event_id', name: 'event', label: 'Event', of: events },
      {
        name: 'record',
        label: 'Record, such as order:<id>',
        kind: 'text',
        where: (key) => whereSql(`this.event_id in (${EVENTS_OF_RECORD})`, [key]) as Where,
        isIndexed: true,
      },
      keyTimeFilter({ name: 'published', label: 'Published' }),
      requestFilter('webhook_events', 'event_id'),
    ],
    suggestions: async (context) => ({ event_type: await publishedTypes(db(context)) }),
    search: [],
    searches: 'delivery, event or webhook id',
    alsoFinds: async (text) => {
      const id = text.replace(/^msg_/, '').toLowerCase();
      return { event_id: isUuid(id) ? [id] : [] };
    },
    related: [
      { to: '*', filter: 'record' },
      { to: 'request', filter: REQUEST_FILTER },
    ],
    refers: { endpoint_id: 'webhook_endpoint', event_id: 'webhook_event' },
    creation: { refused: 'Deliveries are created from published events. Use "Send a ping" on an endpoint to create a test delivery.' },
    exports: false,
    shortcuts: [{ label: 'Retry failed deliveries', filters: { status: 'failed' }, action: 'retry' }],
    actions: [
      {
        name: 'retry',
        label: 'Send again',
        input: { force: true },
        done: 'queued again',
        when: (row) => (row as DeliveryRow).is_active && (row as DeliveryRow).waitsFor === null,
        confirm: {
          one: 'It is queued with a new retry schedule, even if it has succeeded. The receiver can detect the duplicate by its webhook-id.',
          many: 'Each is queued with a new retry schedule, even if it has succeeded. The receiver can detect duplicates by their webhook-id.',
        },
        async message({ message, rows }, context) {
          const held = await heldBehind(db(context), rows);
          return held.size === 0 ? message : `${message} ${adminCount(held.size, WORDS)} of them must wait for an earlier one.`;
        },
        async preview(context, ids) {
          const pending = ids.filter(isUuid).map((id) => ({ id, status: 'pending', ordering_key: '' }) as const);
          const held = await heldBehind(db(context), pending);
          if (held.size === 0) return null;
          const verb = held.size === 1 ? 'waits' : 'wait';
          return {
            message: `${adminCount(held.size, WORDS)} of ${ids.length} ${verb} for an earlier one with the same ordering key. Send that one instead.`,
            tone: 'warning',
          };
        },
      },
      {
        name: 'retry-earlier',
        label: 'Send the earlier one now',
        when: (row) => (row as DeliveryRow).is_active && (row as DeliveryRow).waitsFor !== null,
        confirm:
          'The delivery that blocks this delivery is queued with a new retry schedule. The others with its ordering key follow in order when it has succeeded or failed permanently.',
        confirmLabel: 'Send the earlier one',
        message: ({ returned }) => `${adminCount(new Set(returned).size, ['earlier delivery', 'earlier deliveries'])} queued again.`,
      },
    ],
    sections: [section<DeliveryRow>(async ({ context, row }) => sectionsOf(row, await readSent(db(context), row)))],
  });
}

const EVENTS_OF_RECORD = `select id from (select id from webhook_events where ordering_key = $1 order by id desc limit ${RECORD_EVENTS_MAX}) e`;

/** Rows of a list have times as text. */
function isoOf(time: Date | string): string {
  return new Date(time).toISOString();
}

function earlierLink(place: AdminPlace, { waitsFor }: DeliveryRow) {
  return waitsFor === null ? null : link(place, 'deliveries', waitsFor.id, `${waitsFor.event_type} (earlier)`);
}

/** Why nothing is sent, and what to do about it. */
function noticeOf(place: AdminPlace, delivery: DeliveryRow): AdminNotice | null {
  if (delivery.status !== 'pending') return null;
  const earlier = earlierLink(place, delivery);
  if (earlier !== null)
    return {
      tone: 'warning',
      text: `Nothing is sent yet: deliveries with the ordering key ${delivery.ordering_key ?? ''} go one after the other. It waits for`,
      link: earlier,
    };
  if (delivery.next_attempt_at === null)
    return {
      tone: 'warning',
      text: 'Nothing is sent yet: the event has no audience. Assign one on the page of',
      link: link(place, 'events', delivery.event_id, delivery.event_type),
    };
  if (!delivery.is_active)
    return { tone: 'bad', text: 'The endpoint is disabled:', link: link(place, 'endpoints', delivery.endpoint_id, shownUrl(delivery.url)) };
  return null;
}

/** The request and its attempts. */
interface Sent {
  readonly event: WebhookEvent | null;
  readonly attempts: readonly WebhookAttempt[];
  readonly schedule: RetrySchedule;
}

async function readSent(db: Db, { id, event_id, schedule }: DeliveryRow): Promise<Sent> {
  return {
    event: await findEvent(db, event_id),
    attempts: await attemptsOf(db, id),
    schedule: schedule ?? webhooksOf(db).settings.schedule,
  };
}

function sectionsOf(delivery: DeliveryRow, { event, attempts, schedule }: Sent): AdminSection[] {
  const timeline = timelineOf(delivery, attempts, schedule);
  const made = attemptsSection(delivery, attempts);
  const answers = attempts.length === 0 ? [] : [answerOf(attempts)];
  return event === null
    ? [timeline, ...answers, made]
    : [timeline, ...answers, requestOf(delivery, event), bodyOf(event), made, curlOf(delivery, event)];
}

/** What came back last: what people look for after a ping, and after sending again. */
function answerOf(attempts: readonly WebhookAttempt[]): AdminSection {
  const { status_code: status, error, response_excerpt: body, duration_ms: took } = attempts.at(-1) as WebhookAttempt;
  const outcome = status === null ? `No response${error === null ? '' : `: ${error}`}` : `Status ${status}`;
  const text = body === null || body === '' ? '' : `\n\n${body}`;
  return { kind: 'text', title: 'Response to the last attempt', text: `${outcome}, after ${groupDigits(took)} ms${text}`, code: true };
}

/** What every attempt sends alike. The signature is computed for each and not stored, so there is none to show. */
function requestOf({ url }: DeliveryRow, event: WebhookEvent): AdminSection {
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
function timelineOf(delivery: DeliveryRow, attempts: readonly WebhookAttempt[], schedule: RetrySchedule): AdminSection {
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
function plannedOf(delivery: DeliveryRow, made: number, schedule: RetrySchedule): AdminTimelineEntry[] {
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
function curlOf({ url }: DeliveryRow, event: WebhookEvent): AdminSection {
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

function attemptsSection({ waitsFor }: DeliveryRow, attempts: readonly WebhookAttempt[]): AdminSection {
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
