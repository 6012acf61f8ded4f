import type { AdminContext, AdminResource } from '../../../app/admin/declaration.ts';
import { adminCount } from '../../../app/admin/each.ts';
import { groupDigits } from '../../../app/admin/group-digits.ts';
import { iso } from '../../../app/admin/iso.ts';
import type { AdminLink, AdminState } from '../../../app/admin/shapes.ts';
import type { Hindrance } from '../../../auth/rights/standing.ts';
import type { Db } from '../../../db/engine/db.ts';
import { whereSql } from '../../../db/sql/where/where-sql.ts';
import type { Where } from '../../../db/sql/where/where.ts';
import { isUuid } from '../../../db/values/uuid.ts';
import { screen } from '../../../screens/screen.ts';
import { chart, section } from '../../../screens/screen-words.ts';
import { countMissedOf, oldestFailedOf, waitingOf } from '../endpoints/management-store.ts';
import type { WebhookEndpoint } from '../endpoints/store.ts';
import { webhookErrors } from '../errors.ts';
import { RECOVERED_MAX, type Recovered } from '../maintain/recover.ts';
import { endpointResource } from '../resources/endpoints.ts';
import { webhooksOf } from '../webhooks.ts';
import { endpointForms, eventPatterns } from './endpoint-form.ts';
import { healthChart, lastErrors } from './endpoint-sections.ts';
import {
  databaseOf,
  endpointState,
  link,
  ownerCell,
  ownerFilter,
  ownerHindrances,
  ownerNames,
  shownUrl,
  type AdminPlace,
} from './place.ts';
import { ENDPOINT_STATES, publishedTypes, RATE_DELIVERIES, ratesOf, type EndpointRate } from './store.ts';

const DAY_MS = 86_400_000;
/** Failures that are older than this are usually not worth sending again. */
const MISSED_DAYS = 7;
/** Waiting deliveries are counted up to here. */
const COUNTED_MAX = 10_000;
const RETRY_WAITING = 'Retry all waiting now';
const WORDS = ['delivery', 'deliveries'] as const;

type EndpointRow = WebhookEndpoint & { readonly hindrance?: Hindrance; readonly rate?: EndpointRate };

/** The webhook endpoints of a database in the admin site. */
export function endpointsScreen(place: AdminPlace): AdminResource {
  const db = (context: Pick<AdminContext, 'databases'>) => databaseOf(place, context);
  return screen(endpointResource, {
    name: `endpoints${place.suffix}`,
    label: `Endpoints${place.label}`,
    singular: 'endpoint',
    plural: 'endpoints',
    group: 'Webhooks',
    icon: 'endpoint',
    using: place.database,
    title: 'title',
    state: 'state',
    columns: [
      { name: 'url', kind: 'url' },
      { name: 'owner', kind: 'link' },
      { name: 'tenant_key', label: 'Tenant', secondary: true },
      { name: 'events', secondary: true },
      { name: 'state', kind: 'state' },
      { name: 'success_rate', label: 'Delivered', kind: 'state', secondary: false },
      { name: 'last_delivered_at', label: 'Last delivery', kind: 'time', secondary: true },
      { name: 'description', secondary: true },
      { name: 'created_at', label: 'Created', sortable: true, secondary: true },
    ],
    facts: [
      { name: 'waiting', label: 'Waiting deliveries', kind: 'number' },
      { name: 'next_attempt_at', label: 'Next attempt', kind: 'time', ifSet: true },
      { name: 'failing_since', ifSet: true },
      { name: 'consecutive_failures', label: 'Failures in a row' },
      { name: 'disabled_at', label: 'Disabled', ifSet: true },
      { name: 'signature', kind: 'code' },
      { name: 'public_key', kind: 'code', ifSet: true },
      { name: 'previous_secret_expires_at', label: 'Old secret signs until', ifSet: true },
      { name: 'schedule', label: 'Retry delays', kind: 'text' },
      { name: 'header_names', label: 'Custom headers' },
      { name: 'rate_limit', ifSet: true },
      { name: 'send_traceparent', label: 'Sends the trace context' },
      { name: 'updated_at', label: 'Changed' },
      'id',
    ],
    async load(rows, context) {
      const names = await ownerNames(db(context), rows);
      const hindrances = await ownerHindrances(place, context, rows);
      const rates = await ratesOf(
        db(context),
        rows.map(({ id }) => id),
      );
      return rows.map(({ id, owner_id: owner }) => ({ owner: names.get(owner), hindrance: hindrances.get(id), rate: rates.get(id) }));
    },
    cells: {
      title: ({ url }) => shownUrl(url),
      owner: (row, context) => ownerCell(context, row),
      state: (row) => endpointState(row, (row as EndpointRow).hindrance),
      signature: ({ signature }) => signature,
      success_rate: (row) => rateState((row as EndpointRow).rate),
      last_delivered_at: (row) => iso((row as EndpointRow).rate?.lastDelivered),
      schedule: ({ schedule }) => schedule?.map((seconds) => `${seconds} s`).join(', ') ?? 'default',
    },
    async values({ id }, context) {
      const { waiting, next } = await waitingOf(db(context), id, COUNTED_MAX);
      return { waiting, next_attempt_at: iso(next) };
    },
    filters: [
      {
        name: 'state',
        label: 'State',
        kind: 'select',
        choices: [
          { value: 'active', label: 'Active' },
          { value: 'failing', label: 'Failing' },
          { value: 'disabled', label: 'Disabled' },
        ],
        where: (state) =>
          whereSql(ENDPOINT_STATES[state as keyof typeof ENDPOINT_STATES].replaceAll(/is_active|failing_since/g, 'this.$&')) as Where,
        // What fails or is disabled has indexes; what is left does not.
        isIndexed: (state) => state !== 'active',
      },
      ownerFilter(place, true),
      { column: 'tenant_key', name: 'tenant', label: 'Tenant' },
    ],
    suggestions: async (context) => ({ events: eventPatterns(await publishedTypes(db(context))) }),
    search: ['url', 'description'],
    searches: 'URL, description or owner',
    alsoFinds: async (text, context) => ({ owner_id: await webhooksOf(db(context)).owners.namedLike(db(context), text) }),
    related: [
      { to: 'user', filter: 'owner' },
      { to: 'tenant', filter: 'tenant', column: 'tenant_key' },
    ],
    refers: { delivery_id: 'webhook_delivery' },
    forms: endpointForms(place.eventTypes),
    once: shownOnce,
    removal:
      'Its deliveries and attempts are deleted, and pending deliveries are not sent. To keep them, disable the endpoint. This cannot be undone.',
    exports: false,
    defaults: async (row, context) => ({ recover: { since: (await missedSince(context, db(context), row)).toISOString() } }),
    actions: [
      {
        name: 'ping',
        label: 'Send a ping',
        done: 'pinged',
        when: isEnabled,
        confirm: {
          one: 'A webhook.ping event is sent to it. The page of its delivery shows the response.',
          many: 'A webhook.ping event is sent to each of them. The list of deliveries shows the responses.',
        },
        next: ({ returned }) => pingLink(place, returned),
      },
      {
        name: 'rotate-secret',
        label: 'Rotate the signing secret',
        confirm: 'The new secret is shown once. The receiver needs it before the old secret expires.',
        confirmLabel: 'Rotate',
        message({ rows: [endpoint] }) {
          const until = iso(endpoint?.previous_secret_expires_at);
          const overlap = until === null ? 'The old secret has expired.' : `The old secret also signs until ${until}.`;
          return `The endpoint has a new signing secret. ${overlap}`;
        },
      },
      {
        name: 'recover',
        label: 'Send missed events',
        on: 'record',
        when: isEnabled,
        confirm:
          'Failed deliveries since then, and events published while it was disabled, are queued. The receiver may have received some of them.',
        confirmLabel: 'Send',
        fields: [{ name: 'since', label: 'Since', kind: 'time', required: true }],
        async preview(context, [id = ''], { since }) {
          if (!isUuid(id)) throw webhookErrors.endpoint_not_found();
          const missed = await countMissedOf(db(context), id, { since: new Date(since as string), limit: RECOVERED_MAX });
          const { waiting } = await waitingOf(db(context), id, COUNTED_MAX);
          const queued = `${atMost(missed, RECOVERED_MAX)} will be queued.`;
          const others =
            waiting === 0
              ? ''
              : ` Not part of it: ${atMost(waiting, COUNTED_MAX)} that ${waiting === 1 ? 'waits' : 'wait'} for the next attempt. "${RETRY_WAITING}" is for that.`;
          return { message: `${queued}${others}`, tone: missed === 0 ? 'warning' : 'info' };
        },
        message({ returned }) {
          const [{ requeued, added, complete }] = returned as readonly [Recovered];
          return `${adminCount(requeued + added, WORDS)} queued.${complete ? '' : ' There may be more: run it again.'}`;
        },
      },
      {
        name: 'retry-waiting',
        label: RETRY_WAITING,
        when: async ({ id, is_active: active }, context) => active && (await waitingOf(db(context), id, 1)).waiting > 0,
        confirm: 'Pending deliveries are sent now. Their retry schedules and ordering do not change.',
        confirmLabel: 'Retry now',
        preview: async (context, ids) => ({ message: `${await countWaiting(db(context), ids)} will be tried now.`, tone: 'info' }),
        message: ({ returned }) => `${adminCount(sum(returned), WORDS)} tried now.`,
      },
      {
        name: 'enable',
        label: 'Enable and clear failures',
        done: 'enabled',
        when: (row) => !row.is_active || row.failing_since !== null,
        confirm: 'New events are sent again. To send missed events, use "Send missed events".',
      },
      {
        name: 'disable',
        label: 'Disable',
        tone: 'bad',
        reason: 'optional',
        done: 'disabled',
        when: isEnabled,
        confirm: {
          one: 'Nothing more is sent to it, and its pending deliveries fail. The owner’s other endpoints get an event about it.',
          many: 'Nothing more is sent to them, and their pending deliveries fail. The owners’ other endpoints get an event about it.',
        },
        async preview(context, ids) {
          const waiting = await countWaiting(db(context), ids);
          return waiting.startsWith('0 ')
            ? { message: 'No delivery waits.', tone: 'info' }
            : { message: `${waiting} will fail. They can be sent again after enabling.`, tone: 'warning' };
        },
        message({ message, returned }) {
          const failed = sum(returned);
          return failed === 0 ? message : `${message} ${adminCount(failed, ['waiting delivery', 'waiting deliveries'])} failed.`;
        },
      },
    ],
    sections: [
      chart(({ context, id, range }) => healthChart(context, db(context), id, range), '24h'),
      section(({ context, id }) => lastErrors(place, db(context), id)),
    ],
  });
}

/** The delivery of the only ping: its page shows the response. */
function pingLink(place: AdminPlace, returned: readonly unknown[]): AdminLink | undefined {
  const [ping, ...others] = returned as readonly { readonly id: string }[];
  return ping === undefined || others.length > 0 ? undefined : link(place, 'deliveries', ping.id, 'the delivery');
}

function isEnabled({ is_active: active }: Pick<WebhookEndpoint, 'is_active'>): boolean {
  return active;
}

function sum(counts: readonly unknown[]): number {
  return (counts as readonly number[]).reduce((total, count) => total + count, 0);
}

async function countWaiting(db: Db, ids: readonly string[]): Promise<string> {
  let waiting = 0;
  for (const id of ids.filter(isUuid)) waiting += (await waitingOf(db, id, COUNTED_MAX)).waiting;
  return atMost(waiting, COUNTED_MAX);
}

function atMost(count: number, max: number): string {
  return count >= max ? `${groupDigits(max)} or more deliveries` : adminCount(count, WORDS);
}

/** When the endpoint began to miss events: the first failure since the last success, or the oldest failed delivery of the last days. */
async function missedSince({ clock }: AdminContext, db: Db, endpoint: WebhookEndpoint): Promise<Date> {
  const now = clock.now().getTime();
  const oldest = await oldestFailedOf(db, endpoint.id, new Date(now - MISSED_DAYS * DAY_MS));
  return endpoint.failing_since ?? oldest ?? new Date(now - DAY_MS);
}

/** What the receiver verifies signatures with. */
function shownOnce({ signature, public_key: publicKey }: WebhookEndpoint, values: ReadonlyMap<string, string | null>) {
  if (signature === 'v1a' && publicKey !== null)
    return {
      label: 'Public key',
      value: publicKey,
      note: 'Receivers verify signatures with it. It is not secret, and stays on this page.',
    };
  return {
    label: 'Signing secret',
    value: values.get('secret') ?? '',
    note: 'It is shown this once. Give it to the operator of the receiver; if it is lost, rotate it.',
  };
}

/** `98 %` of the newest deliveries. */
function rateState(rate: EndpointRate | undefined): AdminState | null {
  if (rate === undefined || rate.tried === 0) return null;
  const { succeeded, tried } = rate;
  const percent = (succeeded / tried) * 100;
  return {
    value: `${Math.floor(percent)} %`,
    tone: percent >= 99 ? 'good' : percent >= 90 ? 'warning' : 'bad',
    hint: `${succeeded} of the ${tried} that were tried among its newest ${RATE_DELIVERIES} deliveries.`,
  };
}
