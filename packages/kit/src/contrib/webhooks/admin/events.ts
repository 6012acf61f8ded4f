import type { AdminResource } from '../../../app/admin/declaration.ts';
import type { AdminField, AdminState } from '../../../app/admin/shapes.ts';
import { isUuid } from '../../../db/values/uuid.ts';
import { keyTimeFilter } from '../../../screens/key-time.ts';
import { REQUEST_FILTER, requestFilter } from '../../../screens/request-filter.ts';
import { screen } from '../../../screens/screen.ts';
import { section } from '../../../screens/screen-words.ts';
import { eventData } from '../endpoints/endpoint-record.ts';
import type { WebhookEvent } from '../endpoints/store.ts';
import { AUDIENCE_KEY_LENGTH_MAX, AUDIENCES } from '../models.ts';
import type { Audience } from '../publishing/audience.ts';
import { eventResource } from '../resources/events.ts';
import { databaseOf, ownerCell, ownerFilter, ownerNames, type AdminPlace } from './place.ts';
import { deliveredCounts, EVENT_DELIVERIES_MAX, publishedTypes, type DeliveredCount } from './store.ts';

const AUDIENCE_LABELS: Readonly<Record<Audience['kind'], string>> = {
  owner: 'An owner’s personal endpoints',
  owner_in_tenant: 'An owner’s endpoints within a tenant',
  tenant: 'A tenant’s endpoints',
  broadcast: 'All endpoints',
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

type EventRow = WebhookEvent & { readonly delivered?: DeliveredCount | undefined };

/** The published events of a database in the admin site. */
export function eventsScreen(place: AdminPlace): AdminResource {
  return screen(eventResource, {
    name: `events${place.suffix}`,
    label: `Events${place.label}`,
    singular: 'event',
    group: 'Webhooks',
    icon: 'event',
    using: place.database,
    title: 'type',
    state: 'audience',
    columns: [
      'type',
      'audience',
      { name: 'owner', kind: 'link' },
      { name: 'tenant_key', label: 'Tenant', secondary: true },
      { name: 'delivered', kind: 'state' },
      { name: 'timestamp', label: 'Published', sortable: true, secondary: false },
      { name: 'id', sortable: true, secondary: true },
    ],
    facts: [
      { name: 'webhook_id', label: 'webhook-id', kind: 'code' },
      { name: 'ordering_key', kind: 'code', ifSet: true },
      { name: 'idempotency_key', kind: 'code', ifSet: true },
      { name: 'request_id', label: 'Request id', kind: 'code', ifSet: true },
    ],
    load: async (rows, context) => {
      const [events, db] = [rows as readonly EventRow[], databaseOf(place, context)];
      const names = await ownerNames(db, events);
      const delivered = await deliveredCounts(
        db,
        events.map(({ id }) => id),
      );
      return events.map(({ id, owner_id: owner }) => ({ owner: names.get(owner), delivered: delivered.get(id) }));
    },
    cells: {
      audience: (row) => audienceState((row as EventRow).audience),
      owner: (row, context) => ownerCell(context, row),
      delivered: (row) => deliveredState((row as EventRow).delivered),
      // The site finds the events of a record, and puts them into its timeline.
      record: (row) => (row as EventRow).ordering_key,
    },
    values: ({ id }) => ({ webhook_id: `msg_${id}` }),
    filters: [
      { column: 'type', label: 'Type', kind: 'text', suggestions: place.eventTypes },
      {
        name: 'audience',
        column: 'audience',
        label: 'Audience',
        kind: 'select',
        choices: [...audienceChoices, { value: 'none', label: 'None (not sent)' }],
        where: (audience) => ({ audience: audience === 'none' ? null : audience }),
        isIndexed: (audience) => audience === 'none',
      },
      ownerFilter(place, false),
      { column: 'tenant_key', name: 'tenant', label: 'Tenant' },
      { column: 'ordering_key', label: 'Ordering key' },
      keyTimeFilter({ name: 'published', label: 'Published' }),
      requestFilter('webhook_events'),
    ],
    suggestions: async (context) => ({ type: await publishedTypes(databaseOf(place, context)) }),
    search: ['type'],
    searches: 'event id, webhook id or type',
    alsoFinds: async (text) => {
      const id = text.replace(/^msg_/, '').toLowerCase();
      return { id: isUuid(id) ? [id] : [] };
    },
    related: [
      { to: 'user', filter: 'owner' },
      { to: '*', filter: 'ordering_key' },
      { to: 'request', filter: REQUEST_FILTER },
    ],
    creation: { refused: 'Events are published by the application, in the transaction of the change.' },
    exports: false,
    actions: [
      {
        name: 'assign-audience',
        label: 'Assign an audience',
        // One at a time: marking many events at once is how one of them reaches the wrong receiver.
        on: 'record',
        confirm: 'Its pending deliveries are sent to this audience and cannot be recalled. An audience is assigned once.',
        confirmLabel: 'Assign',
        fields: audienceFields,
        when: ({ audience }) => audience === null,
        message: ({ returned: [audience] }) => `The event is for: ${AUDIENCE_LABELS[(audience as Audience).kind].toLowerCase()}.`,
      },
    ],
    sections: [section<EventRow>(({ row }) => ({ kind: 'json', title: 'Payload', value: eventData(row) ?? row.data }))],
  });
}

/** `2 of 3`. */
function deliveredState(count: DeliveredCount | undefined): AdminState | null {
  if (count === undefined) return null;
  if (count.all === 0) return { value: 'no receiver', tone: 'neutral', hint: 'No endpoint of the audience subscribes to this type.' };
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

function audienceState(audience: WebhookEvent['audience']): AdminState {
  if (audience === null) return { value: 'none', tone: 'warning', hint: 'Not sent until an audience is assigned.' };
  return { value: audience, tone: audience === 'broadcast' ? 'info' : 'neutral', hint: AUDIENCE_LABELS[audience] };
}
