import { resource } from '../../../crud/checks/declare-resource.ts';
import type { User } from '../../../auth/people/principal.ts';
import type { CrudCaller } from '../../../crud/declare/crud-caller.ts';
import type { GiveOnce, WriteContext } from '../../../crud/declare/resource.ts';
import { jsonSchema } from '../../../http/declare/json-schema.ts';
import { createEndpoint, type CreatedEndpoint, type EndpointInput } from '../endpoints/create-endpoint.ts';
import { checkEndpointFields, type EndpointFields } from '../endpoints/endpoint-fields.ts';
import { deliveryRecord, recordEndpointChange } from '../endpoints/endpoint-record.ts';
import { rotateSecret, signatureOf } from '../endpoints/endpoint-secret.ts';
import { pingEndpoint } from '../endpoints/ping.ts';
import { deleteEndpoint, type WebhookEndpoint } from '../endpoints/store.ts';
import { updateEndpoint } from '../endpoints/update-endpoint.ts';
import { webhookErrors } from '../errors.ts';
import { recoverEndpoint } from '../maintain/recover.ts';
import { SIGNATURES, webhookEndpoints } from '../models.ts';
import { CreateBody, DeliveryOut, RecoverBody, RecoveredOut, UpdateBody, type CreateFields, type UpdateFields } from '../schemas.ts';
import type { SignatureVersion } from '../signing/signature.ts';
import { webhooksOf } from '../webhooks.ts';

/** Endpoints of the caller, personal ones where its controller has no tenant. The verbs write them: they check, seal and keep the subscriptions. */
export const endpointResource = resource(webhookEndpoints, {
  name: 'webhook_endpoint',
  missing: webhookErrors.endpoint_not_found,
  owner: 'owner_id',
  rows: ({ tenant }) => ({ tenant_key: tenant ?? '' }),
  hidden: ['owner_id', 'rate_next_at'],
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
  validate({ input, caller, db }) {
    // The verbs check again: here the errors are reported together with those of the schema.
    checkEndpointFields(webhooksOf(db), fieldsOf(input, caller));
    return [];
  },
  hooks: {
    async create({ input, once, ...context }) {
      const { tx, user, tenant } = context;
      const { signature, headers, ...fields } = input as CreateFields;
      const given = {
        ...fieldsOf(fields, context.caller),
        ...(signature === undefined ? {} : { signature }),
        ...(headers === undefined ? {} : { headers }),
      };
      const created = await createEndpoint(tx, { ...(given as EndpointInput), owner: (user as User).id, tenantKey: tenant ?? '' });
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
      summary: 'Queue a webhook.ping event for this endpoint',
      status: 202,
      response: DeliveryOut,
      effects: 'outside',
      raises: [webhookErrors.endpoint_disabled],
      run: async ({ row, tx }) => deliveryRecord(await pingEndpoint(tx, row)),
    },
    recover: {
      summary: 'Send again what the endpoint has missed since a time',
      input: RecoverBody,
      status: 202,
      response: RecoveredOut,
      raises: [webhookErrors.endpoint_disabled, webhookErrors.endpoint_owner_not_allowed],
      run: ({ row, tx, input }) => recoverEndpoint(tx, row, new Date(input.since)),
    },
  },
});

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
