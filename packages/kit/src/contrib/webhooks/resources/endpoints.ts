import { resource } from '../../../crud/checks/declare-resource.ts';
import type { CrudCaller } from '../../../crud/declare/crud-caller.ts';
import { visibleTo } from '../../../crud/declare/field-rule.ts';
import { type GiveOnce, STAFF, type WriteContext } from '../../../crud/declare/resource.ts';
import type { Db } from '../../../db/engine/db.ts';
import type { Where } from '../../../db/sql/where/where.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import { FaultCollector } from '../../../errors/fault-collector.ts';
import type { KitError } from '../../../errors/kit-error.ts';
import { jsonSchema } from '../../../http/declare/json-schema.ts';
import { isStaff } from '../../../permissions/built-ins.ts';
import { URL_NOT_ALLOWED } from '../network/url-policy.ts';
import { createEndpoint, type CreatedEndpoint, type EndpointInput } from '../endpoints/create-endpoint.ts';
import { disableCounting, enableEndpoint } from '../endpoints/disable.ts';
import { endpointColumns, type EndpointFields } from '../endpoints/endpoint-fields.ts';
import { deliveryRecord, recordEndpointChange } from '../endpoints/endpoint-record.ts';
import { rotateSecret, signatureOf } from '../endpoints/endpoint-secret.ts';
import { type ExampleEvent, pingEndpoint } from '../endpoints/ping.ts';
import { deleteEndpoint, findEndpoint, type WebhookEndpoint } from '../endpoints/store.ts';
import { endpointOwner } from '../endpoints/whose-endpoints.ts';
import { updateEndpoint } from '../endpoints/update-endpoint.ts';
import { webhookErrors } from '../errors.ts';
import { recoverEndpoint, retryWaiting } from '../maintain/recover.ts';
import { SIGNATURES, webhookEndpoints } from '../models.ts';
import {
  CreateBody,
  DeliveryOut,
  PingBody,
  RecoverBody,
  RecoveredOut,
  UpdateBody,
  type CreateFields,
  type UpdateFields,
} from '../schemas.ts';
import type { SignatureVersion } from '../signing/signature.ts';
import { webhooksOf, type Webhooks } from '../webhooks.ts';

/** Endpoints of the caller, personal ones where its controller has no tenant. The verbs write them: they check, seal and keep the subscriptions. */
export const endpointResource = resource(webhookEndpoints, {
  changes: 'trigger',
  name: 'webhook_endpoint',
  missing: webhookErrors.endpoint_not_found,
  rows: (caller) => rowsOf(caller),
  audiences: { [STAFF]: { rows: true } },
  hidden: ['rate_next_at'],
  fields: { owner_id: visibleTo(isStaff) },
  shown: {
    header_names: {
      requires: [],
      response: jsonSchema<readonly string[]>({
        type: 'array',
        items: { type: 'string' },
        description: 'Names of the custom headers; their values are not shown.',
      }),
      value: ({ header_names: names }) => names ?? [],
    },
    signature: {
      requires: ['secret', 'public_key'],
      response: jsonSchema<SignatureVersion | null>({
        type: ['string', 'null'],
        enum: [...SIGNATURES, null],
        description: 'null if the secret cannot be decrypted.',
      }),
      load: (rows, { db }) => rows.map((row) => signatureOf(webhooksOf(db), row).signature),
    },
    public_key: {
      requires: ['secret', 'signature'],
      response: jsonSchema<string | null>({
        type: ['string', 'null'],
        description: 'The key that receivers verify `v1a` signatures with.',
      }),
      load: (rows, { db }) => rows.map((row) => signatureOf(webhooksOf(db), row).public_key),
    },
  },
  writes: 'verbs',
  bodies: { create: CreateBody, update: UpdateBody },
  once: {
    secret: {
      on: ['create', 'rotate-secret'],
      nullable: true,
      description: 'The signing secret. Shown this once. null for `v1a`, whose private key stays here: receivers need `public_key`.',
    },
  },
  // The verbs check again: here the errors are reported together with those of the schema.
  async validate({ input, caller, db }) {
    const webhooks = webhooksOf(db);
    const { url, ...fields } = fieldsOf(input, caller);
    const faults = new FaultCollector();
    if (caller.audience === STAFF) {
      await faults.check(() => ownerNamed(db, input));
      faults.check(() => checkUrlForStaff(webhooks, url));
    }
    endpointColumns(webhooks, caller.audience === STAFF ? fields : { ...fields, url }, faults);
    faults.throwIfAny();
    return [];
  },
  hooks: {
    async create({ input, once, ...context }) {
      const { tx, user, tenant, caller } = context;
      const { signature, headers, ...fields } = input as CreateFields;
      // Staff creates endpoints for others.
      const owner = caller.audience === STAFF ? await ownerNamed(tx, input) : endpointOwner({ ...caller, user, tenant });
      const tenantKey = caller.audience === STAFF ? (input as OwnerFields).tenant_key : tenant;
      const given = {
        ...fieldsOf(fields, caller),
        ...(signature === undefined ? {} : { signature }),
        ...(headers === undefined ? {} : { headers }),
      };
      const created = await createEndpoint(tx, { ...(given as EndpointInput), owner: owner as string, tenantKey: tenantKey ?? '' });
      return recorded(context, 'created', null, giveSecret(created, once));
    },
    async update({ before, input, ...context }) {
      const { is_active: isActive, ...fields } = input as UpdateFields;
      const after = await updateEndpoint(context.tx, before, { ...fieldsOf(fields, context.caller), isActive });
      return recorded(context, 'updated', before, after);
    },
    async destroy({ before, ...context }) {
      await deleteEndpoint(context.tx, before.id);
      await recorded(context, 'deleted', before, null);
    },
  },
  actions: {
    'rotate-secret': {
      summary: 'Give a webhook endpoint a new signing secret of the same kind',
      raises: [webhookErrors.too_many_secrets],
      async run({ row, once, ...context }) {
        const rotated = await rotateSecret(context.tx, row.id);
        if (rotated === null) throw webhookErrors.endpoint_not_found();
        await recorded(context, 'secret_rotated', row, giveSecret(rotated, once));
      },
    },
    ping: {
      summary: 'Queue a webhook.ping event for this endpoint, or the example of a type',
      input: PingBody,
      status: 202,
      response: DeliveryOut,
      effects: 'outside',
      raises: [webhookErrors.endpoint_disabled],
      async run({ row, input, ...context }) {
        const example = input.event_type === undefined ? undefined : exampleOf(context.tx, input.event_type, context.caller);
        const delivery = await pingEndpoint(context.tx, row, example);
        await recordAction(context, row, 'pinged', {
          delivery_id: delivery.id,
          ...(example === undefined ? {} : { event_type: example.type }),
        });
        return deliveryRecord(delivery);
      },
    },
    recover: {
      summary: 'Send again what the endpoint has missed since a time',
      input: RecoverBody,
      status: 202,
      response: RecoveredOut,
      raises: [webhookErrors.endpoint_disabled, webhookErrors.endpoint_owner_not_allowed],
      async run({ row, input, ...context }) {
        const since = new Date(input.since);
        const recovered = await recoverEndpoint(context.tx, row, since);
        await recordAction(context, row, 'recovered', { since, ...recovered });
        return recovered;
      },
    },
    'retry-waiting': {
      audience: STAFF,
      summary: 'Retry all waiting deliveries of a webhook endpoint now',
      raises: [webhookErrors.endpoint_disabled, webhookErrors.endpoint_owner_not_allowed],
      async run({ row, ...context }) {
        const count = await retryWaiting(context.tx, row);
        await recordAction(context, row, 'waiting_retried', { deliveries: count });
        return count;
      },
    },
    enable: {
      audience: STAFF,
      summary: 'Enable a webhook endpoint and clear its failures',
      async run({ row, ...context }) {
        await enableEndpoint(context.tx, row.id);
        await recorded(context, 'updated', row, await findEndpoint(context.tx, row.id));
      },
    },
    disable: {
      audience: STAFF,
      summary: 'Disable a webhook endpoint and fail its pending deliveries',
      async run({ row, ...context }) {
        const failed = await disableCounting(context.tx, row.id, 'manual');
        await recorded(context, 'updated', row, await findEndpoint(context.tx, row.id));
        return failed ?? 0;
      },
    },
  },
});

/** The example of a type that callers of this controller may subscribe to. */
function exampleOf(tx: Db, name: string, { controller }: Pick<CrudCaller, 'controller'>): ExampleEvent {
  const { availableEvents = null } = (controller ?? {}) as { readonly availableEvents?: readonly string[] | null };
  const declared =
    availableEvents?.includes(name) === false ? undefined : webhooksOf(tx).settings.eventTypes.find((each) => each.name === name);
  if (declared === undefined) throw fieldFault('event_type', 'unknown_event', 'There is no such event type: see the list of event types.');
  if (declared.example === null) throw fieldFault('event_type', 'no_example', 'This event type has no example. Choose another one.');
  return { type: name, data: declared.example };
}

/** The endpoints of an owner, which may be a tenant: personal ones where the controller has no tenant. */
function rowsOf(caller: CrudCaller): Where<(typeof webhookEndpoints)['columns']> {
  const owner = endpointOwner(caller);
  return owner === undefined ? { or: [] } : { tenant_key: caller.tenant ?? '', owner_id: owner };
}

/** Names of the owner and the tenant of a new endpoint, which only staff gives. */
interface OwnerFields {
  readonly owner_id?: string;
  readonly tenant_key?: string;
}

/** The id of the user whom staff names: by id, name or address. Undefined: nobody is named. */
async function ownerNamed(db: Db, input: object): Promise<string | undefined> {
  const { owner_id: typed } = input as OwnerFields;
  const id = typed === undefined ? undefined : await webhooksOf(db).owners.find(db, typed);
  if (id === null) throw fieldFault('owner', 'unknown_user', 'There is no such user.');
  return id;
}

/** Tenants get one sentence for every refusal; staff is told which rule it was. */
function checkUrlForStaff({ settings }: Webhooks, url: string | undefined): void {
  const checked = url === undefined ? null : settings.urlPolicy.checkUrl(url);
  if (checked?.ok === false) throw fieldFault('url', 'url_not_allowed', `${URL_NOT_ALLOWED} The policy says: ${checked.detail}.`);
}

function fieldFault(field: string, code: string, message: string): KitError {
  return coreErrors.validation_error({ errors: [{ location: ['body', field], code, message }] });
}

/** What a body says, in the words of the verbs. A controller may say which types of events there are. */
function fieldsOf(body: object, { controller }: Pick<CrudCaller, 'controller'>): EndpointFields {
  const { url, events, description, schedule, headers, rate_limit: rateLimit, send_traceparent: sendTraceparent } = body as UpdateFields;
  const { availableEvents = null } = (controller ?? {}) as { readonly availableEvents?: readonly string[] | null };
  const given = { url, events, description, schedule, headers, rateLimit, sendTraceparent };
  const named = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  return { ...named, ...(availableEvents === null ? {} : { availableEvents }) };
}

/** A receiver that verifies `v1a` needs the public key; the private one stays here. */
function giveSecret({ endpoint, secret }: CreatedEndpoint, once: GiveOnce): WebhookEndpoint {
  if (endpoint.signature !== 'v1a') once('secret', secret);
  return endpoint;
}

async function recorded<R extends WebhookEndpoint | null>(
  { tx, principal, requestId }: WriteContext,
  change: Parameters<typeof recordEndpointChange>[1],
  before: WebhookEndpoint | null,
  after: R,
): Promise<R> {
  await recordEndpointChange(tx, change, { before, after }, { by: principal, requestId });
  return after;
}

async function recordAction(
  { tx, principal, requestId }: Pick<WriteContext, 'tx' | 'principal' | 'requestId'>,
  { id, tenant_key: tenant }: WebhookEndpoint,
  action: 'pinged' | 'recovered' | 'waiting_retried',
  metadata: object,
): Promise<void> {
  const target = { target_type: 'webhook_endpoint', target_id: id };
  await webhooksOf(tx).registry.audit?.record(tx, [
    { actor: principal, action: `webhook_endpoint.${action}`, ...target, tenant, metadata, request_id: requestId },
  ]);
}
