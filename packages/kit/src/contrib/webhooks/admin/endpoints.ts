import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Hindrance } from '../../../auth/rights/standing.ts';
import { isUuid } from '../../../db/values/uuid.ts';
import type { AdminContext, AdminResource } from '../../../app/admin/declaration.ts';
import { iso } from '../../../app/admin/iso.ts';
import type { AdminRow, AdminState, AdminValue } from '../../../app/admin/shapes.ts';
import type { Db } from '../../../db/engine/db.ts';
import { FaultCollector } from '../../../errors/fault-collector.ts';
import { createEndpoint, type EndpointInput } from '../endpoints/create-endpoint.ts';
import { recordEndpointChange } from '../endpoints/endpoint-record.ts';
import { oldestFailedOf, waitingOf } from '../endpoints/management-store.ts';
import { ownersNamedLike } from '../endpoints/owners.ts';
import { updateEndpoint } from '../endpoints/update-endpoint.ts';
import type { SignatureVersion } from '../signing/signature.ts';
import { deleteEndpoint, findEndpoint } from '../endpoints/store.ts';
import { author, change, COUNTED_MAX, endpointActions, shownOnce } from './endpoint-actions.ts';
import { creationFields, editedFields, eventPatterns, formValues } from './endpoint-fields.ts';
import { formFault, readEndpointForm, type EndpointForm } from './endpoint-form.ts';
import { factsOf, health, lastErrors, recent } from './endpoint-sections.ts';
import { endpointList } from './lists.ts';
import { databaseOf, ownerHindrances, endpointState, ownerIdOf, ownerLinks, shownUrl, type AdminPlace } from './place.ts';
import {
  findShownEndpoint,
  listEndpointsForAdmin,
  namesOf,
  publishedTypes,
  RATE_DELIVERIES,
  ratesOf,
  type EndpointRate,
  type ShownEndpoint,
} from './store.ts';

const DAY_MS = 86_400_000;
/** Failures that are older than this are usually not worth sending again. */
const MISSED_DAYS = 7;

export function endpointsResource(place: AdminPlace): AdminResource {
  return {
    name: `endpoints${place.suffix}`,
    label: `Endpoints${place.label}`,
    singular: 'endpoint',
    group: 'Webhooks',
    icon: 'endpoint',
    auditedAs: 'webhook_endpoint',
    columns: endpointList.columns,
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
    creation: { fields: creationFields(place.eventTypes) },
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
      const hindrances = await ownerHindrances(place, context, rows);
      const rates = await ratesOf(
        databaseOf(place, context),
        rows.map((endpoint) => endpoint.id),
      );
      return { items: rows.map((endpoint) => rowOf(endpoint, ownerLink(endpoint.owner_id), rates.get(endpoint.id), hindrances)), ...page };
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
      const hindrances = await ownerHindrances(place, context, [endpoint]);
      const row = rowOf(endpoint, ownerLink(endpoint.owner_id), (await ratesOf(db, [id])).get(id), hindrances);
      const { waiting, next } = await waitingOf(db, id, COUNTED_MAX);
      return {
        ...row,
        state: endpointState(endpoint, hindrances),
        sections: [
          factsOf(endpoint, row, { waiting, next }),
          await health(context, db, id, range),
          await recent(place, db, endpoint),
          await lastErrors(place, db, endpoint),
        ],
        form: { fields: editedFields([...place.eventTypes, ...(await publishedTypes(db))]), values: formValues(endpoint) },
        actions: endpoint.is_active
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

/** From when on something was missed: the first failure since the last success, or the oldest failed delivery of the last days. */
async function missedSince({ clock }: AdminContext, db: Db, endpoint: ShownEndpoint): Promise<Date> {
  const now = clock.now().getTime();
  const oldest = await oldestFailedOf(db, endpoint.id, new Date(now - MISSED_DAYS * DAY_MS));
  return endpoint.failing_since ?? oldest ?? new Date(now - DAY_MS);
}

function rowOf(
  endpoint: ShownEndpoint,
  owner: AdminValue,
  rate: EndpointRate | undefined,
  hindrances: ReadonlyMap<string, Hindrance>,
): AdminRow {
  return {
    id: endpoint.id,
    title: shownUrl(endpoint.url),
    values: endpointList.values(endpoint, {
      owner,
      state: endpointState(endpoint, hindrances),
      success_rate: rateState(rate),
      last_delivered_at: iso(rate?.lastDelivered),
    }),
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
