import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import { requestFilter } from '../../../app/admin/list.ts';
import { isUuid } from '../../../db/values/uuid.ts';
import type { AdminContext, AdminResource } from '../../../app/admin/declaration.ts';
import type { AdminField, AdminRow, AdminState, AdminValue } from '../../../app/admin/shapes.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import { FaultCollector } from '../../../errors/fault-collector.ts';
import { deliveryRow } from './deliveries.ts';
import { deliveryList, eventList } from './lists.ts';
import { databaseOf, ownerIdOf, ownerLinks, type AdminPlace } from './place.ts';
import {
  deliveredCounts,
  deliveriesOfEvent,
  EVENT_DELIVERIES_MAX,
  listEventsForAdmin,
  namesOf,
  publishedTypes,
  type DeliveredCount,
  type ListedEvent,
} from './store.ts';
import { assignAudience } from '../maintain/assign-audience.ts';
import { InvalidAudience, parseAudience, type Audience } from '../publishing/audience.ts';
import { eventData } from '../endpoints/endpoint-record.ts';
import { webhookErrors } from '../errors.ts';
import { AUDIENCE_KEY_LENGTH_MAX, AUDIENCES } from '../models.ts';
import { findEvent } from '../endpoints/store.ts';

/** Deliveries on the page of their event; the list has the rest. */
const DELIVERIES_MAX = 50;

const AUDIENCE_LABELS: Readonly<Record<Audience['kind'], string>> = {
  owner: 'An owner’s personal endpoints',
  owner_in_tenant: 'An owner’s endpoints within a tenant',
  tenant: 'A tenant’s endpoints',
  broadcast: 'Everybody',
};

const audienceChoices = AUDIENCES.map((value) => ({ value, label: AUDIENCE_LABELS[value] }));

const audienceFields: readonly AdminField[] = [
  {
    name: 'audience',
    label: 'Audience',
    kind: 'select',
    required: true,
    choices: audienceChoices,
    help: 'Use a broadcast for public events only: every subscriber gets the payload.',
  },
  { name: 'owner', label: 'Owner', kind: 'reference', of: 'user', maxLength: AUDIENCE_KEY_LENGTH_MAX },
  { name: 'tenant_key', label: 'Tenant', kind: 'text', maxLength: AUDIENCE_KEY_LENGTH_MAX, help: 'As the application publishes it.' },
];

export function eventsResource(place: AdminPlace): AdminResource {
  return {
    name: `events${place.suffix}`,
    label: `Events${place.label}`,
    singular: 'event',
    group: 'Webhooks',
    icon: 'event',
    auditedAs: 'webhook_event',
    columns: eventList.columns,
    filters: [
      { name: 'type', label: 'Type', kind: 'text', suggestions: place.eventTypes },
      {
        name: 'audience',
        label: 'Audience',
        kind: 'select',
        choices: [...audienceChoices, { value: 'none', label: 'None (not sent)' }],
      },
      { name: 'owner', label: 'Owner', kind: 'reference', of: 'user' },
      { name: 'tenant', label: 'Tenant', kind: 'text' },
      { name: 'ordering_key', label: 'Ordering key', kind: 'text' },
      { name: 'published', label: 'Published', kind: 'time', ends: ['since', 'until'] },
      requestFilter,
    ],
    suggestions: async (context) => ({ type: await publishedTypes(databaseOf(place, context)) }),
    searches: 'event id, webhook-id or type',
    creation: { refused: 'Events are published by the application, in the transaction of what they are about.' },
    editable: false,
    removable: false,
    actions: [
      {
        name: 'assign-audience',
        label: 'Assign an audience',
        tone: 'neutral',
        // One at a time: marking many events at once is how one of them reaches the wrong receiver.
        on: 'record',
        confirm: 'Its pending deliveries are sent to this audience and cannot be recalled. An audience is assigned once.',
        confirmLabel: 'Assign',
        fields: audienceFields,
        run: (context, [id = ''], fields) => assign(place, context, id, fields),
      },
    ],
    async list(context, query) {
      const { owner } = query.filters;
      const known = owner === undefined ? undefined : ((await ownerIdOf(place, context, owner)) ?? owner);
      const filters = known === undefined ? query.filters : { ...query.filters, owner: known };
      const { rows, ...page } = await listEventsForAdmin(databaseOf(place, context), { ...query, filters });
      const ownerLink = await ownerLinks(
        place,
        context,
        rows.map((event) => event.owner_id),
      );
      const delivered = await deliveredCounts(
        databaseOf(place, context),
        rows.map((event) => event.id),
      );
      return { items: rows.map((event) => rowOf(event, ownerLink(event.owner_id), delivered.get(event.id))), ...page };
    },
    related: [
      { to: 'user', filter: 'owner' },
      { to: '*', filter: 'ordering_key' },
      { to: 'request', filter: requestFilter.name },
    ],
    titles: async (context, ids) => new Map((await namesOf(databaseOf(place, context), 'events', ids)).map(({ id, type }) => [id, type])),
    async read(context, id) {
      const db = databaseOf(place, context);
      const event = isUuid(id) ? await findEvent(db, id) : null;
      if (event === null) return null;
      const ownerLink = await ownerLinks(place, context, [event.owner_id]);
      const row = rowOf(event, ownerLink(event.owner_id), (await deliveredCounts(db, [event.id])).get(event.id));
      const deliveries = await deliveriesOfEvent(db, id, DELIVERIES_MAX);
      return {
        ...row,
        state: audienceState(event.audience),
        sections: [
          eventList.facts('Event', event, { ...row.values, webhook_id: `msg_${event.id}` }, [
            { name: 'webhook_id', label: 'webhook-id', kind: 'code' },
            { name: 'ordering_key', kind: 'code' },
            { name: 'idempotency_key', kind: 'code' },
            { name: 'request_id', label: 'Request id', kind: 'code' },
          ]),
          { kind: 'json', title: 'Payload', value: eventData(event) ?? event.data },
          {
            kind: 'table',
            title: 'Deliveries',
            columns: [
              { name: 'delivery', label: 'Delivery', kind: 'link' },
              ...deliveryList.columns.filter(({ name }) => name !== 'event'),
            ],
            rows: deliveries.map((delivery) => deliveryRow(place, delivery)),
            empty: 'No endpoint of its audience subscribes to it.',
            more: { resource: `deliveries${place.suffix}`, filters: { event: event.id } },
          },
        ],
        actions: event.audience === null ? ['assign-audience'] : [],
        removable: false,
      };
    },
  };
}

async function assign(place: AdminPlace, context: AdminContext, id: string, fields: Readonly<Record<string, unknown>>) {
  if (!isUuid(id)) throw webhookErrors.event_not_found();
  const audience = await readAudience(place, context, fields as { audience: Audience['kind']; owner?: string; tenant_key?: string });
  await databaseOf(place, context).transaction(async (tx) => {
    if (!(await assignAudience(tx, id, audience)))
      throw (await findEvent(tx, id)) === null ? webhookErrors.event_not_found() : webhookErrors.audience_assigned();
    await context.audit?.record(tx, [
      {
        actor: context.principal,
        action: 'webhook_event.audience_assigned',
        target_type: 'webhook_event',
        target_id: id,
        before: { audience: null },
        after: {
          audience: audience.kind,
          ...('owner' in audience ? { owner_id: audience.owner } : {}),
          ...('tenantKey' in audience ? { tenant_key: audience.tenantKey } : {}),
        },
        request_id: context.requestId,
      },
    ]);
  }, CONFLICT_RETRIES);
  return { message: `The event is for: ${AUDIENCE_LABELS[audience.kind].toLowerCase()}.`, id };
}

/** What the chosen kind needs, and nothing it does not: an owner that is left over must not narrow or widen anything. */
async function readAudience(
  place: AdminPlace,
  context: AdminContext,
  { audience, owner = '', tenant_key = '' }: { audience: Audience['kind']; owner?: string; tenant_key?: string },
): Promise<Audience> {
  const needs = { owner: audience.startsWith('owner'), tenant_key: audience.endsWith('tenant') };
  const faults = new FaultCollector();
  for (const [name, given] of [
    ['owner', owner],
    ['tenant_key', tenant_key],
  ] as const) {
    if (needs[name] && given === '') faults.refuse(fault(name, 'required', 'This audience needs it.'));
    if (!needs[name] && given !== '') faults.refuse(fault(name, 'not_allowed', 'This audience has none: leave it empty.'));
  }
  const ownerId = needs.owner && owner !== '' ? await ownerIdOf(place, context, owner) : undefined;
  if (ownerId === null) faults.refuse(fault('owner', 'unknown_user', 'There is no such user.'));
  faults.throwIfAny();
  try {
    return parseAudience({
      owner: ownerId as string | undefined,
      ...(needs.tenant_key ? { tenantKey: tenant_key } : {}),
      ...(audience === 'broadcast' ? { broadcast: true } : {}),
    });
  } catch (error) {
    if (error instanceof InvalidAudience) throw fault('audience', error.code, error.message);
    throw error;
  }
}

function fault(field: string, code: string, message: string) {
  return coreErrors.validation_error({ errors: [{ location: ['body', 'fields', field], code, message }] });
}

function rowOf(event: ListedEvent, owner: AdminValue, delivered: DeliveredCount | undefined): AdminRow {
  const { id, type, audience, ordering_key: record, request_id } = event;
  const shown = { audience: audienceState(audience), owner, delivered: deliveredState(delivered), record, request_id };
  return { id, title: type, values: eventList.values(event, shown) };
}

/** `2 of 3`. */
function deliveredState(count: DeliveredCount | undefined): AdminState | null {
  if (count === undefined || count.all === 0) return null;
  const { succeeded, failed, all } = count;
  const waiting = all - succeeded - failed;
  const tone = failed > 0 ? 'bad' : waiting > 0 ? 'info' : 'good';
  const rest = [...(failed > 0 ? [`${failed} failed`] : []), ...(waiting > 0 ? [`${waiting} waiting`] : [])];
  return {
    value: `${succeeded} of ${all}${all === EVENT_DELIVERIES_MAX ? '+' : ''}`,
    tone,
    ...(rest.length === 0 ? {} : { hint: `${rest.join(', ')}.` }),
  };
}

function audienceState(audience: ListedEvent['audience']): AdminState {
  if (audience === null) return { value: 'none', tone: 'warning', hint: 'Not sent until an audience is assigned.' };
  return { value: audience, tone: audience === 'broadcast' ? 'info' : 'neutral', hint: AUDIENCE_LABELS[audience] };
}
