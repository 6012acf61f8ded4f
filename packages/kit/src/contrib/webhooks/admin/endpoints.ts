import { CONFLICT_RETRIES } from '../../../db/conflict-retries.ts';
import { adminBuckets } from '../../../app/admin/range.ts';
import { adminCount, adminDone, adminEach } from '../../../app/admin/each.ts';
import { sortableColumns } from '../../../app/admin/list.ts';
import { isUuid } from '../../../db/uuid.ts';
import type { AdminAction, AdminContext, AdminResource } from '../../../app/admin/declaration.ts';
import type { AdminColumn, AdminField, AdminRange, AdminRow, AdminSection, AdminState, AdminValue } from '../../../app/admin/shapes.ts';
import type { Db } from '../../../db/db.ts';
import { FaultCollector } from '../../../errors/fault-collector.ts';
import { deliveryColumns, deliveryRow } from './deliveries.ts';
import { databaseOf, endpointState, iso, ownerIdOf, ownerLinks, shownUrl, type AdminPlace } from './place.ts';
import {
  attemptsOfEndpoint,
  ENDPOINT_ORDERS,
  findShownEndpoint,
  HEALTH_DELIVERIES_MAX,
  lastErrorsOf,
  listEndpointsForAdmin,
  namesOf,
  publishedTypes,
  RATE_DELIVERIES,
  ratesOf,
  withProgress,
  type EndpointRate,
  type ShownEndpoint,
} from './store.ts';
import { formFault, HIDDEN_VALUE, readEndpointForm, type EndpointForm } from './endpoint-form.ts';
import { createEndpoint, type EndpointInput } from '../endpoints/create-endpoint.ts';
import { disableCounting, enableEndpoint } from '../endpoints/disable.ts';
import { recordEndpointChange } from '../endpoints/endpoint-record.ts';
import { rotateSecret } from '../endpoints/endpoint-secret.ts';
import { webhookErrors } from '../errors.ts';
import { countMissedOf, listDeliveries, oldestFailedOf, waitingOf, type WaitingOfEndpoint } from '../endpoints/management-store.ts';
import { HEADER_NAME_LENGTH_MAX, HEADER_VALUE_LENGTH_MAX } from '../endpoints/custom-headers.ts';
import { AUDIENCE_KEY_LENGTH_MAX, DESCRIPTION_LENGTH_MAX, RATE_LENGTH_MAX } from '../models.ts';
import type { SignatureVersion } from '../signing/signature.ts';
import { ownersNamedLike } from '../endpoints/owners.ts';
import { pingEndpoint } from '../endpoints/ping.ts';
import { RECOVERED_MAX, recoverEndpoint, retryWaiting } from '../delivery/recover.ts';
import { deleteEndpoint, findEndpoint, lockEndpoint, type WebhookDelivery, type WebhookEndpoint } from '../store.ts';
import { EVENT_TYPE_LENGTH_MAX } from '../endpoints/subscription.ts';
import { updateEndpoint } from '../endpoints/update-endpoint.ts';
import { URL_LENGTH_MAX } from '../network/url-policy.ts';

/** Deliveries and errors on the page of their endpoint; the list has the rest. */
const RECENT_MAX = 10;
const DAY_MS = 86_400_000;
/** Failures that are older than this are usually not worth sending again. */
const MISSED_DAYS = 7;

/** Waiting deliveries are counted up to here. */
const COUNTED_MAX = 10_000;
const RETRY_WAITING = 'Retry all waiting now';
const WORDS = ['delivery', 'deliveries'] as const;

const columns = sortableColumns(
  [
    { name: 'url', label: 'URL', kind: 'url' },
    { name: 'owner', label: 'Owner', kind: 'link' },
    { name: 'tenant_key', label: 'Tenant', kind: 'text', secondary: true },
    { name: 'events', label: 'Events', kind: 'chips', secondary: true },
    { name: 'state', label: 'State', kind: 'state' },
    { name: 'success_rate', label: 'Delivered', kind: 'state' },
    { name: 'last_delivered_at', label: 'Last delivery', kind: 'time', secondary: true },
    { name: 'description', label: 'Description', kind: 'text', secondary: true },
    { name: 'created_at', label: 'Created', kind: 'time', sortable: true, secondary: true },
  ],
  ENDPOINT_ORDERS,
);

const urlField: AdminField = {
  name: 'url',
  label: 'URL',
  kind: 'text',
  required: true,
  maxLength: URL_LENGTH_MAX,
  placeholder: 'https://example.com/hooks',
  // Its query may hold a token of the receiver.
  sensitive: true,
};
const eventsField: AdminField = {
  name: 'events',
  label: 'Events',
  kind: 'strings',
  required: true,
  maxLength: EVENT_TYPE_LENGTH_MAX,
  help: 'Types (`order.paid`), patterns (`order.*`), or `*`.',
};
/** The types, and the patterns they have in common. */
function eventPatterns(types: readonly string[]): readonly string[] {
  const patterns = new Set(types.flatMap((type) => (type.includes('.') ? [`${type.slice(0, type.indexOf('.'))}.*`] : [])));
  return types.length === 0 ? [] : [...types, ...patterns, '*'];
}

/** With the types that the application declares and those that were published. */
function eventsFieldOf({ eventTypes }: AdminPlace, published: readonly string[] = []): AdminField {
  return { ...eventsField, suggestions: eventPatterns([...new Set([...eventTypes, ...published])]) };
}
const descriptionField: AdminField = { name: 'description', label: 'Description', kind: 'text', maxLength: DESCRIPTION_LENGTH_MAX };

const scheduleField: AdminField = {
  name: 'schedule',
  label: 'Retry delays',
  kind: 'strings',
  maxLength: 20,
  help: 'Seconds between attempts, in order; empty for the schedule of the application.',
};
const headersField: AdminField = {
  name: 'headers',
  label: 'Custom headers',
  kind: 'strings',
  maxLength: HEADER_NAME_LENGTH_MAX + HEADER_VALUE_LENGTH_MAX + 2,
  placeholder: 'X-Api-Key: …',
  sensitive: true,
  help: `One per line, "Name: value". Stored values are not shown: "${HIDDEN_VALUE}" keeps one, a removed line removes it.`,
};
const rateLimitField: AdminField = {
  name: 'rate_limit',
  label: 'Rate limit',
  kind: 'text',
  maxLength: RATE_LENGTH_MAX,
  placeholder: '10/s',
  help: 'Requests at most; empty for no limit.',
};
const sendTraceparentField: AdminField = {
  name: 'send_traceparent',
  label: 'Send the trace',
  kind: 'bool',
  help: 'Sends traceparent, so that the receiver can continue the trace of the request that published the event.',
};
const signatureField: AdminField = {
  name: 'signature',
  label: 'Signature',
  kind: 'select',
  choices: [
    { value: 'v1', label: 'v1: HMAC with a shared secret' },
    { value: 'v1a', label: 'v1a: ed25519, verified with a public key' },
  ],
  help: 'Default: v1. Rotation keeps the signature type.',
};

const creationFields = (place: AdminPlace): readonly AdminField[] => [
  { name: 'owner', label: 'Owner', kind: 'reference', of: 'user', required: true, maxLength: AUDIENCE_KEY_LENGTH_MAX },
  {
    name: 'tenant_key',
    label: 'Tenant',
    kind: 'text',
    maxLength: AUDIENCE_KEY_LENGTH_MAX,
    help: 'As the application publishes it; empty for a personal endpoint.',
  },
  urlField,
  eventsFieldOf(place),
  descriptionField,
  signatureField,
  scheduleField,
  headersField,
  rateLimitField,
  sendTraceparentField,
];

export function endpointsResource(place: AdminPlace): AdminResource {
  return {
    name: `endpoints${place.suffix}`,
    label: `Endpoints${place.label}`,
    singular: 'endpoint',
    group: 'Webhooks',
    icon: 'endpoint',
    auditedAs: 'webhook_endpoint',
    columns,
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
      },
      { name: 'owner', label: 'Owner', kind: 'reference', of: 'user' },
      { name: 'tenant', label: 'Tenant', kind: 'text' },
    ],
    suggestions: async (context) => ({ events: eventPatterns(await publishedTypes(databaseOf(place, context))) }),
    searches: 'URL, description or owner',
    creation: { fields: creationFields(place) },
    editable: true,
    removable: true,
    dryRunsRemoval: true,
    removal:
      'Its deliveries and attempts are deleted, and pending deliveries are not sent. To keep them, disable the endpoint. This cannot be undone.',
    actions: endpointActions(place),
    async list(context, query) {
      const owners = query.search === null ? [] : await ownersNamedLike(context.db, place.users(), query.search);
      const { owner } = query.filters;
      const known = owner === undefined ? undefined : ((await ownerIdOf(place, context, owner)) ?? owner);
      const filters = known === undefined ? query.filters : { ...query.filters, owner: known };
      const { rows, ...page } = await listEndpointsForAdmin(databaseOf(place, context), { ...query, filters }, owners);
      const ownerLink = await ownerLinks(
        place,
        context,
        rows.map((endpoint) => endpoint.owner_id),
      );
      const rates = await ratesOf(
        databaseOf(place, context),
        rows.map((endpoint) => endpoint.id),
      );
      return { items: rows.map((endpoint) => rowOf(endpoint, ownerLink(endpoint.owner_id), rates.get(endpoint.id))), ...page };
    },
    related: [{ to: 'user', filter: 'owner' }],
    refers: { delivery_id: 'webhook_delivery' },
    titles: async (context, ids) =>
      new Map((await namesOf(databaseOf(place, context), 'endpoints', ids)).map(({ id, url }) => [id, shownUrl(url)])),
    async read(context, id, range = '24h') {
      const db = databaseOf(place, context);
      const endpoint = isUuid(id) ? await findShownEndpoint(db, id) : null;
      if (endpoint === null) return null;
      const ownerLink = await ownerLinks(place, context, [endpoint.owner_id]);
      const row = rowOf(endpoint, ownerLink(endpoint.owner_id), (await ratesOf(db, [id])).get(id));
      const { url, events, description, is_active } = endpoint;
      const { waiting, next } = await waitingOf(db, id, COUNTED_MAX);
      return {
        ...row,
        state: endpointState(endpoint),
        sections: [
          factsOf(endpoint, row, { waiting, next }),
          await health(context, db, id, range),
          await recent(place, db, endpoint),
          await lastErrors(place, db, endpoint),
        ],
        form: {
          fields: [
            urlField,
            eventsFieldOf(place, await publishedTypes(db)),
            descriptionField,
            scheduleField,
            headersField,
            rateLimitField,
            sendTraceparentField,
          ],
          values: {
            url,
            events,
            description,
            schedule: (endpoint.schedule ?? []).map(String),
            headers: (endpoint.header_names ?? []).map((name) => `${name}: ${HIDDEN_VALUE}`),
            rate_limit: endpoint.rate_limit ?? '',
            send_traceparent: endpoint.send_traceparent,
          },
        },
        actions: is_active
          ? [
              'ping',
              'rotate-secret',
              'recover',
              ...(waiting > 0 ? ['retry-waiting'] : []),
              ...(endpoint.failing_since === null ? [] : ['enable']),
              'disable',
            ]
          : ['enable', 'rotate-secret'],
        range,
        defaults: { recover: { since: (await missedSince(context, db, endpoint)).toISOString() } },
        removable: true,
      };
    },
    async validate(context, fields, id) {
      const { owner, ...form } = fields as Partial<NewEndpointFields>;
      const db = databaseOf(place, context);
      const faults = new FaultCollector();
      if (owner !== undefined) await faults.check(() => requireOwner(place, context, owner));
      readEndpointForm(db, form, id === null ? null : await findEndpoint(db, id), faults);
      faults.throwIfAny();
    },
    async create(context, fields) {
      const { owner, tenant_key: tenantKey = '', signature, ...form } = fields as unknown as NewEndpointFields;
      const db = databaseOf(place, context);
      const faults = new FaultCollector();
      const ownerId = await faults.check(() => requireOwner(place, context, owner));
      const given = readEndpointForm(db, form, null, faults);
      faults.throwIfAny();
      const { endpoint, secret } = await db.transaction(async (tx) => {
        const created = await createEndpoint(tx, {
          ...(given as Pick<EndpointInput, 'url' | 'events'>),
          owner: ownerId as string,
          tenantKey,
          ...(isSet(signature) ? { signature } : {}),
        });
        await recordEndpointChange(tx, 'created', { before: null, after: created.endpoint }, author(context));
        return created;
      }, CONFLICT_RETRIES);
      return { message: `The endpoint ${shownUrl(endpoint.url)} is created.`, id: endpoint.id, secret: shownOnce(endpoint, secret) };
    },
    async update(context, id, fields) {
      await change(databaseOf(place, context), id, async (tx, before) => {
        const faults = new FaultCollector();
        const given = readEndpointForm(tx, fields, before, faults);
        faults.throwIfAny();
        const after = await updateEndpoint(tx, before, given);
        await recordEndpointChange(tx, 'updated', { before, after }, author(context));
      });
      return { message: 'The endpoint is saved.', id };
    },
    async remove(context, id) {
      const url = await change(databaseOf(place, context), id, async (tx, before) => {
        await deleteEndpoint(tx, before.id);
        await recordEndpointChange(tx, 'deleted', { before, after: null }, author(context));
        return before.url;
      });
      return { message: `The endpoint ${shownUrl(url)} is deleted, with its deliveries.` };
    },
  };
}

interface NewEndpointFields extends EndpointForm {
  readonly owner: string;
  readonly tenant_key?: string;
  readonly signature?: SignatureVersion;
}

async function requireOwner(place: AdminPlace, context: AdminContext, owner: string): Promise<string> {
  const id = await ownerIdOf(place, context, owner);
  if (id === null) throw formFault('owner', 'unknown_user', 'There is no such user.');
  return id;
}

/** Forms send an empty text, or null, for a field that is left empty. */
function isSet<T extends string>(value: T | null | undefined): value is T {
  return value !== undefined && value !== null && value !== '';
}

function endpointActions(place: AdminPlace): readonly AdminAction[] {
  const each = (
    shape: Omit<AdminAction, 'run' | 'dryRun'>,
    participle: string,
    work: (context: AdminContext, tx: Db, endpoint: WebhookEndpoint) => Promise<void>,
  ): AdminAction => ({
    ...shape,
    dryRun: participle,
    async run(context, ids) {
      const db = databaseOf(place, context);
      const result = await adminEach(context, ids, (id) => change(db, id, (tx, endpoint) => work(context, tx, endpoint)));
      return adminDone(result, ['endpoint', 'endpoints'], participle);
    },
  });
  return [
    each(
      {
        name: 'enable',
        label: 'Enable and clear failures',
        tone: 'neutral',
        on: 'selection',
        confirm: 'New events are sent again. To send missed events, use "Send missed events".',
      },
      'enabled',
      async (context, tx, before) => {
        await enableEndpoint(tx, before.id);
        await recordEndpointChange(tx, 'updated', { before, after: await findEndpoint(tx, before.id) }, author(context));
      },
    ),
    disableAction(place),
    each({ name: 'ping', label: 'Send a ping', tone: 'neutral', on: 'selection' }, 'pinged', async (context, tx, endpoint) => {
      const delivery = await pingEndpoint(tx, endpoint);
      await record(context, tx, endpoint, 'webhook_endpoint.pinged', { delivery_id: delivery.id });
    }),
    rotateAction(place),
    recoverAction(place),
    retryWaitingAction(place),
  ];
}

function rotateAction(place: AdminPlace): AdminAction {
  return {
    name: 'rotate-secret',
    label: 'Rotate the signing secret',
    tone: 'neutral',
    on: 'record',
    confirm: 'The new secret is shown once. The receiver needs it before the old secret expires.',
    confirmLabel: 'Rotate',
    async run(context, [id = '']) {
      const { endpoint, secret } = await change(databaseOf(place, context), id, async (tx, before) => {
        const rotated = await rotateSecret(tx, before.id);
        if (rotated === null) throw webhookErrors.endpoint_not_found();
        await recordEndpointChange(tx, 'secret_rotated', { before, after: rotated.endpoint }, author(context));
        return rotated;
      });
      const until = iso(endpoint.previous_secret_expires_at);
      const overlap = until === null ? 'The old secret has expired.' : `The old secret also signs until ${until}.`;
      return { message: `The endpoint has a new signing secret. ${overlap}`, id, secret: shownOnce(endpoint, secret) };
    },
  };
}

function recoverAction(place: AdminPlace): AdminAction {
  return {
    name: 'recover',
    label: 'Send missed events',
    tone: 'neutral',
    on: 'record',
    confirm:
      'Failed deliveries since then, and events published while it was disabled, are queued. The receiver may have received some of them.',
    confirmLabel: 'Send',
    fields: [{ name: 'since', label: 'Since', kind: 'time', required: true }],
    async preview(context, [id = ''], { since }) {
      const db = databaseOf(place, context);
      if (!isUuid(id)) throw webhookErrors.endpoint_not_found();
      const missed = await countMissedOf(db, id, { since: new Date(since as string), limit: RECOVERED_MAX });
      const { waiting } = await waitingOf(db, id, COUNTED_MAX);
      const queued = `${atMost(missed, RECOVERED_MAX)} will be queued.`;
      const others =
        waiting === 0
          ? ''
          : ` Not part of it: ${atMost(waiting, COUNTED_MAX)} that ${waiting === 1 ? 'waits' : 'wait'} for the next attempt. "${RETRY_WAITING}" is for that.`;
      return { message: `${queued}${others}`, tone: missed === 0 ? 'warning' : 'info' };
    },
    async run(context, [id = ''], { since }) {
      const from = new Date(since as string);
      const { requeued, added, complete } = await change(databaseOf(place, context), id, async (tx, endpoint) => {
        const recovered = await recoverEndpoint(tx, endpoint, from);
        await record(context, tx, endpoint, 'webhook_endpoint.recovered', { since: from, ...recovered });
        return recovered;
      });
      return { message: `${adminCount(requeued + added, WORDS)} queued.${complete ? '' : ' There may be more: run it again.'}`, id };
    },
  };
}

function retryWaitingAction(place: AdminPlace): AdminAction {
  return {
    name: 'retry-waiting',
    label: RETRY_WAITING,
    tone: 'neutral',
    on: 'selection',
    confirm: 'Pending deliveries are sent now. Their retry schedules and ordering do not change.',
    confirmLabel: 'Retry now',
    preview: async (context, ids) => ({
      message: `${await countWaiting(databaseOf(place, context), ids)} will be tried now.`,
      tone: 'info',
    }),
    async run(context, ids) {
      const db = databaseOf(place, context);
      let retried = 0;
      const { failures } = await adminEach(context, ids, (id) =>
        change(db, id, async (tx, endpoint) => {
          const count = await retryWaiting(tx, endpoint);
          await record(context, tx, endpoint, 'webhook_endpoint.waiting_retried', { deliveries: count });
          retried += count;
        }),
      );
      return { message: `${adminCount(retried, WORDS)} tried now.`, ...(failures.length === 0 ? {} : { failures }) };
    },
  };
}

function disableAction(place: AdminPlace): AdminAction {
  return {
    name: 'disable',
    dryRun: 'disabled',
    label: 'Disable',
    tone: 'bad',
    on: 'selection',
    reason: 'optional',
    confirm: {
      one: 'Nothing more is sent to it, and its pending deliveries fail. The owner’s other endpoints get an event about it.',
      many: 'Nothing more is sent to them, and their pending deliveries fail. The owners’ other endpoints get an event about it.',
    },
    preview: async (context, ids) => {
      const waiting = await countWaiting(databaseOf(place, context), ids);
      return waiting.startsWith('0 ')
        ? { message: 'No delivery waits.', tone: 'info' }
        : { message: `${waiting} will fail. They can be sent again after enabling.`, tone: 'warning' };
    },
    async run(context, ids) {
      const db = databaseOf(place, context);
      let failed = 0;
      const result = await adminEach(context, ids, (id) =>
        change(db, id, async (tx, before) => {
          failed += (await disableCounting(tx, before.id, 'manual')) ?? 0;
          await recordEndpointChange(tx, 'updated', { before, after: await findEndpoint(tx, before.id) }, author(context));
        }),
      );
      const { message, ...rest } = adminDone(result, ['endpoint', 'endpoints'], 'disabled');
      return {
        message: failed === 0 ? message : `${message} ${adminCount(failed, ['waiting delivery', 'waiting deliveries'])} failed.`,
        ...rest,
      };
    },
  };
}

async function countWaiting(db: Db, ids: readonly string[]): Promise<string> {
  let waiting = 0;
  for (const id of ids.filter(isUuid)) waiting += (await waitingOf(db, id, COUNTED_MAX)).waiting;
  return atMost(waiting, COUNTED_MAX);
}

function atMost(count: number, max: number): string {
  return count >= max ? `${max.toLocaleString('en')} or more deliveries` : adminCount(count, WORDS);
}

/** From when on something was missed: the first failure since the last success, or the oldest failed delivery of the last days. */
async function missedSince({ clock }: AdminContext, db: Db, endpoint: ShownEndpoint): Promise<Date> {
  const now = clock.now().getTime();
  const oldest = await oldestFailedOf(db, endpoint.id, new Date(now - MISSED_DAYS * DAY_MS));
  return endpoint.failing_since ?? oldest ?? new Date(now - DAY_MS);
}

async function change<R>(db: Db, id: string, work: (tx: Db, endpoint: WebhookEndpoint) => Promise<R>): Promise<R> {
  return db.transaction(async (tx) => {
    const endpoint = isUuid(id) ? await lockEndpoint(tx, id) : null;
    if (endpoint === null) throw webhookErrors.endpoint_not_found();
    return work(tx, endpoint);
  }, CONFLICT_RETRIES);
}

function author({ principal, requestId }: AdminContext) {
  return { by: principal, requestId };
}

async function record(context: AdminContext, tx: Db, { id }: WebhookEndpoint, action: string, metadata: object): Promise<void> {
  const { audit, principal, requestId } = context;
  await audit?.record(tx, [{ actor: principal, action, target_type: 'webhook_endpoint', target_id: id, metadata, request_id: requestId }]);
}

function shownOnce({ signature, public_key: publicKey }: Pick<WebhookEndpoint, 'signature' | 'public_key'>, value: string) {
  if (signature === 'v1a' && publicKey !== null)
    return {
      label: 'Public key',
      value: publicKey,
      note: 'Receivers verify signatures with it. It is not secret, and stays on this page.',
    };
  return {
    label: 'Signing secret',
    value,
    note: 'It is shown this once. Give it to the operator of the receiver; if it is lost, rotate it.',
  };
}

function rowOf(endpoint: ShownEndpoint, owner: AdminValue, rate: EndpointRate | undefined): AdminRow {
  const { id, url, events, description, tenant_key, created_at } = endpoint;
  return {
    id,
    title: shownUrl(url),
    values: {
      url,
      owner,
      tenant_key: tenant_key === '' ? null : tenant_key,
      events,
      state: endpointState(endpoint),
      success_rate: rateState(rate),
      last_delivered_at: iso(rate?.lastDelivered ?? null),
      description: description === '' ? null : description,
      created_at: created_at.toISOString(),
    },
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

function factsOf(endpoint: ShownEndpoint, row: AdminRow, { waiting, next }: WaitingOfEndpoint): AdminSection {
  return {
    kind: 'facts',
    title: 'Endpoint',
    columns: [
      ...columns,
      { name: 'waiting', label: 'Waiting deliveries', kind: 'number' },
      { name: 'next_attempt_at', label: 'Next attempt', kind: 'time' },
      { name: 'failing_since', label: 'Failing since', kind: 'time' },
      { name: 'consecutive_failures', label: 'Failures in a row', kind: 'number' },
      { name: 'disabled_at', label: 'Disabled', kind: 'time' },
      { name: 'signature', label: 'Signature', kind: 'code' },
      { name: 'public_key', label: 'Public key', kind: 'code' },
      { name: 'previous_secret_expires_at', label: 'Old secret signs until', kind: 'time' },
      { name: 'schedule', label: 'Retry delays', kind: 'text' },
      { name: 'header_names', label: 'Custom headers', kind: 'chips' },
      { name: 'rate_limit', label: 'Rate limit', kind: 'text' },
      { name: 'send_traceparent', label: 'Sends the trace', kind: 'bool' },
      { name: 'updated_at', label: 'Changed', kind: 'time' },
      { name: 'id', label: 'Id', kind: 'code' },
    ],
    values: {
      ...row.values,
      waiting,
      next_attempt_at: iso(next),
      failing_since: iso(endpoint.failing_since),
      consecutive_failures: endpoint.consecutive_failures,
      disabled_at: iso(endpoint.disabled_at),
      previous_secret_expires_at: iso(endpoint.previous_secret_expires_at),
      signature: endpoint.signature,
      public_key: endpoint.public_key,
      schedule: endpoint.schedule === null ? 'those of the application' : endpoint.schedule.map((seconds) => `${seconds} s`).join(', '),
      header_names: endpoint.header_names ?? [],
      rate_limit: endpoint.rate_limit,
      send_traceparent: endpoint.send_traceparent,
      updated_at: endpoint.updated_at.toISOString(),
      id: endpoint.id,
    },
  };
}

async function health({ clock }: AdminContext, db: Db, id: string, range: AdminRange): Promise<AdminSection> {
  const buckets = adminBuckets(range, clock.now());
  const counted = await attemptsOfEndpoint(db, id, buckets);
  const of = (name: 'succeeded' | 'failed') =>
    buckets.starts.map((_, index) => counted.find(({ bucket }) => bucket === index)?.[name] ?? 0);
  return {
    kind: 'chart',
    chart: {
      title: `Attempts (of up to ${HEALTH_DELIVERIES_MAX.toLocaleString('en')} deliveries)`,
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
  ...deliveryColumns.filter(({ name }) => name !== 'endpoint' && name !== 'event'),
];

async function recent(place: AdminPlace, db: Db, endpoint: ShownEndpoint): Promise<AdminSection> {
  const deliveries = await listDeliveries(db, endpoint.id, {}, { limit: RECENT_MAX });
  return deliveryTable(place, db, endpoint, deliveries, {
    title: 'Recent deliveries',
    columns: recentColumns,
    empty: 'Nothing was published to it yet.',
  });
}

async function lastErrors(place: AdminPlace, db: Db, endpoint: ShownEndpoint): Promise<AdminSection> {
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
