import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import { databaseNamed } from '../../db/open/named-database.ts';
import type { Database, Db } from '../../db/engine/db.ts';
import type { User } from '../../auth/people/principal.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { Controller } from '../../http/compile/controller.ts';
import type { HandlerContext } from '../../http/declare/handler-context.ts';
import type { Page } from '../../http/declare/page.ts';
import { route } from '../../http/declare/route.ts';
import { hasScopes } from '../../permissions/built-ins.ts';
import { userThrottle } from '../../throttle/throttles.ts';
import type { Throttle } from '../../throttle/throttle.ts';
import { createEndpoint, type CreatedEndpoint } from './endpoints/create-endpoint.ts';
import { isEventType } from './publishing/subscription.ts';
import { checkEndpointFields } from './endpoints/endpoint-fields.ts';
import { deliveryDetail, deliveryRecord, endpointRecord, recordEndpointChange, type EndpointRecord } from './endpoints/endpoint-record.ts';
import { rotateSecret } from './endpoints/endpoint-secret.ts';
import { webhookErrors } from './errors.ts';
import {
  countDeliveries,
  findDeliveryOf,
  findOwnEndpoint,
  lockOwnEndpoint,
  listDeliveries,
  listOwnEndpoints,
  type EndpointScope,
} from './endpoints/management-store.ts';
import { pingEndpoint } from './endpoints/ping.ts';
import { recoverEndpoint } from './maintain/recover.ts';
import { retryDelivery } from './maintain/retry.ts';
import {
  CreateBody,
  DeliveryDetailOut,
  DeliveryId,
  DeliveryOut,
  DeliveryPage,
  DeliveryQuery,
  EndpointId,
  EndpointOut,
  EndpointPage,
  EndpointQuery,
  EndpointWithSecret,
  EventTypePage,
  RecoverBody,
  RecoveredOut,
  RetryBody,
  UpdateBody,
  type UpdateFields,
} from './schemas.ts';
import { attemptsOf, countEndpoints, deleteEndpoint, findEvent, type WebhookEndpoint } from './endpoints/store.ts';
import { updateEndpoint } from './endpoints/update-endpoint.ts';
import { controllerOptions } from '../../http/declare/controller-options.ts';
import { filledText, listOf, nullable, oneOf, rule, sentenceRule } from '../../options/value-rule.ts';
import { rateFault } from '../../throttle/rate.ts';
import { webhooksOf } from './webhooks.ts';
import type { App } from '../../app/declare/module.ts';
import { requiredDatabase } from '../../app/declare/required-database.ts';
import { requiredModule } from '../../app/declare/required-module.ts';
import { misspeltEvents } from './misspelt-events.ts';
import type { Fault } from '../../options/fault.ts';

type Context = HandlerContext<unknown, unknown, unknown, unknown, User>;

const PAGE_SIZE = 100;
// Sessions may do everything here; credentials that carry scopes, such as API keys, need the one of the route.
const permission = hasScopes({ allowUnscoped: true });
const reads = { permission, scope: 'webhooks:read' } as const;
const writes = { permission, scope: 'webhooks:write' } as const;
const notFound = [webhookErrors.endpoint_not_found] as const;
const notFoundDelivery = [webhookErrors.endpoint_not_found, webhookErrors.delivery_not_found] as const;
const refusals = [
  webhookErrors.url_not_allowed,
  webhookErrors.invalid_events,
  webhookErrors.unknown_event,
  webhookErrors.invalid_endpoint,
] as const;

/**
 * Users manage their own webhook endpoints. Mounted where the app likes: `'/webhooks': WebhookEndpointController`. A
 * subclass may say which events exist, and serve the endpoints of a tenant instead of personal ones.
 */
export class WebhookEndpointController extends Controller {
  static override readonly tags: readonly string[] = ['webhooks'];

  static readonly [controllerOptions] = {
    // A pattern here would be an event type that nothing publishes: what it should allow would be refused.
    availableEvents: nullable(listOf(rule('an event type, such as "order.paid" (patterns are for endpoints)', isEventType))),
    tenantField: nullable(oneOf('tenant_key')),
    using: filledText,
    sendRate: sentenceRule(rateFault),
  };

  /**
   * Event types of the application: `[orderResource.eventTypes.created, 'invoice.sent']`. Patterns that match none of them are rejected.
   * Default: null; endpoints can subscribe to any type.
   */
  static readonly availableEvents: readonly string[] | null = null;
  /** `'tenant_key'`: endpoints of the caller's tenant. Default: null; personal endpoints. */
  static readonly tenantField: 'tenant_key' | null = null;
  /** The database that events are published in. */
  static readonly using: string = 'default';
  /** How often a user may ping, retry and recover: each makes this server send requests to a URL whose ownership is not proven. */
  static readonly sendRate: string = '60/min';

  // Before the routes, which name it.
  readonly #sends: readonly Throttle[] = [userThrottle(this.#options.sendRate, { name: 'webhook_sends' })];

  /**
   * The tenant a request acts for, as `publish({ tenantKey })` spells it; null when there is none. Never read from the input. Default: the tenant that
   * the app found, with `createApp({ tenant })` or a module.
   */
  tenantKey({ caller }: Context): string | null | Promise<string | null> {
    return caller().then(({ tenant }) => tenant);
  }

  list = route.get(
    '/',
    { ...reads, query: EndpointQuery, response: EndpointPage, summary: 'List your webhook endpoints, newest first' },
    async (context) => {
      const { query } = context;
      const db = this.#db(context);
      const scope = await this.#scope(context);
      const { limit = PAGE_SIZE } = query;
      const found = await listOwnEndpoints(db, scope, { limit: limit + 1, after: query.cursor });
      return slice(found.map(recordOf(db)), limit, await countEndpoints(db, scope.owner, scope.tenantKey));
    },
  );

  eventTypes = route.get(
    '/event-types',
    {
      ...reads,
      response: EventTypePage,
      metadata: { boundedList: 'declared types' },
      summary: 'List the types of events that may be subscribed to',
    },
    (context) => {
      const { eventTypes } = webhooksOf(this.#db(context)).settings;
      const items = eventTypes.map(({ name, description, jsonSchema: schema, example }) => ({ name, description, schema, example }));
      return { items, count: items.length, next: null };
    },
  );

  create = route.post(
    '/',
    {
      ...writes,
      body: CreateBody,
      validate: (body, context) => this.#check(context, body),
      response: EndpointWithSecret,
      status: 201,
      raises: [...refusals, webhookErrors.quota_exceeded],
      summary: 'Create a webhook endpoint',
      description: 'The response is the only time the signing secret is shown.',
    },
    async (context) => {
      const { rate_limit: rateLimit = null, send_traceparent: sendTraceparent = false, ...fields } = context.body;
      const { owner, tenantKey } = await this.#scope(context);
      const input = { owner, tenantKey, ...fields, rateLimit, sendTraceparent, ...this.#available };
      const created = await this.#db(context).transaction(async (tx) => {
        const result = await createEndpoint(tx, input);
        await recordEndpointChange(tx, 'created', { before: null, after: result.endpoint }, author(context));
        return result;
      }, CONFLICT_RETRIES);
      void context.reply.header('cache-control', 'no-store');
      return withSecret(this.#db(context), created);
    },
  );

  read = route.get(
    '/:id',
    { ...reads, params: EndpointId, response: EndpointOut, raises: notFound, summary: 'Read a webhook endpoint' },
    async (context) => recordOf(this.#db(context))(await this.#find(context, context.params.id)),
  );

  edit = route.patch(
    '/:id',
    {
      ...writes,
      params: EndpointId,
      body: UpdateBody,
      validate: (body, context) => this.#check(context, body),
      response: EndpointOut,
      raises: [...notFound, ...refusals],
      summary: 'Change a webhook endpoint, disable or enable it',
      description: 'Fields that are left out keep their value.',
    },
    (context) => this.#update(context, context.params.id, context.body),
  );

  replace = route.put(
    '/:id',
    {
      ...writes,
      params: EndpointId,
      body: UpdateBody,
      validate: (body, context) => this.#check(context, body),
      response: EndpointOut,
      raises: [...notFound, ...refusals],
      summary: 'Change a webhook endpoint, disable or enable it',
      description: 'Like PATCH: fields that are left out keep their value, `is_active` too.',
    },
    (context) => this.#update(context, context.params.id, context.body),
  );

  remove = route.delete(
    '/:id',
    { ...writes, params: EndpointId, raises: notFound, summary: 'Delete a webhook endpoint with its deliveries' },
    (context) =>
      this.#change(context, context.params.id, async (tx, before) => {
        await deleteEndpoint(tx, before.id);
        await recordEndpointChange(tx, 'deleted', { before, after: null }, author(context));
      }),
  );

  rotateSecret = route.post(
    '/:id/rotate-secret',
    {
      ...writes,
      params: EndpointId,
      response: EndpointWithSecret,
      raises: [...notFound, webhookErrors.too_many_secrets],
      summary: 'Give a webhook endpoint a new signing secret of the same kind',
      description:
        'The response is the only time it is shown. Requests carry signatures of both secrets until `previous_secret_expires_at`.',
    },
    async (context) => {
      const rotated = await this.#change(context, context.params.id, async (tx, before) => {
        const result = await rotateSecret(tx, before.id);
        if (result === null) throw webhookErrors.endpoint_not_found();
        await recordEndpointChange(tx, 'secret_rotated', { before, after: result.endpoint }, author(context));
        return result;
      });
      void context.reply.header('cache-control', 'no-store');
      return withSecret(this.#db(context), rotated);
    },
  );

  deliveries = route.get(
    '/:id/deliveries',
    {
      ...reads,
      params: EndpointId,
      query: DeliveryQuery,
      response: DeliveryPage,
      raises: notFound,
      summary: 'List the deliveries of a webhook endpoint, newest first',
    },
    async (context) => {
      const { params, query } = context;
      const { status, event_type: eventType, cursor: after, limit = PAGE_SIZE } = query;
      const { id } = await this.#find(context, params.id);
      const db = this.#db(context);
      const found = await listDeliveries(db, id, { status, eventType }, { limit: limit + 1, after });
      return slice(found.map(deliveryRecord), limit, await countDeliveries(db, id, { status, eventType }));
    },
  );

  delivery = route.get(
    '/:id/deliveries/:delivery_id',
    {
      ...reads,
      params: DeliveryId,
      response: DeliveryDetailOut,
      raises: notFoundDelivery,
      summary: 'Read a delivery, its payload and attempts',
    },
    async (context) => {
      const endpoint = await this.#find(context, context.params.id);
      const db = this.#db(context);
      const delivery = await findDeliveryOf(db, endpoint.id, context.params.delivery_id);
      const event = delivery === null ? null : await findEvent(db, delivery.event_id);
      if (delivery === null || event === null) throw webhookErrors.delivery_not_found();
      return deliveryDetail(delivery, event, await attemptsOf(db, delivery.id));
    },
  );

  retry = route.post(
    '/:id/deliveries/:delivery_id/retry',
    {
      ...writes,
      throttles: this.#sends,
      params: DeliveryId,
      body: RetryBody,
      response: DeliveryOut,
      raises: [
        ...notFoundDelivery,
        webhookErrors.delivery_claimed,
        webhookErrors.delivery_held,
        webhookErrors.delivery_succeeded,
        webhookErrors.endpoint_disabled,
        webhookErrors.endpoint_owner_not_allowed,
      ],
      summary: 'Send a delivery again, with all its attempts',
      description: 'The receiver may have processed it already; it deduplicates on `webhook-id`.',
    },
    async (context) =>
      this.#change(context, context.params.id, async (tx, endpoint) => {
        const delivery = await findDeliveryOf(tx, endpoint.id, context.params.delivery_id);
        if (delivery === null) throw webhookErrors.delivery_not_found();
        return deliveryRecord(await retryDelivery(tx, delivery.id, { force: context.body.force === true }));
      }),
  );

  ping = route.post(
    '/:id/ping',
    {
      ...writes,
      throttles: this.#sends,
      params: EndpointId,
      response: DeliveryOut,
      status: 202,
      raises: [...notFound, webhookErrors.endpoint_disabled],
      summary: 'Queue a webhook.ping event for this endpoint',
    },
    async (context) => deliveryRecord(await this.#change(context, context.params.id, pingEndpoint)),
  );

  recover = route.post(
    '/:id/recover',
    {
      ...writes,
      throttles: this.#sends,
      params: EndpointId,
      body: RecoverBody,
      response: RecoveredOut,
      status: 202,
      raises: [...notFound, webhookErrors.endpoint_disabled, webhookErrors.endpoint_owner_not_allowed],
      summary: 'Send again what the endpoint has missed since a time',
    },
    (context) => this.#change(context, context.params.id, (tx, endpoint) => recoverEndpoint(tx, endpoint, new Date(context.body.since))),
  );

  get #options(): typeof WebhookEndpointController {
    return this.constructor as typeof WebhookEndpointController;
  }

  get #available(): { readonly availableEvents?: readonly string[] } {
    const { availableEvents } = this.#options;
    return availableEvents === null ? {} : { availableEvents };
  }

  #db({ databases }: Pick<Context, 'databases'>): Database {
    const { using, name } = this.#options;
    return databaseNamed(databases, using, `${name}.using`);
  }

  async #scope(context: Context): Promise<EndpointScope> {
    const owner = context.user.id;
    if (this.#options.tenantField === null) return { owner, tenantKey: '' };
    const tenantKey = await this.tenantKey(context);
    // An empty key would mean personal endpoints: a caller without a tenant has nothing here.
    if (typeof tenantKey !== 'string' || tenantKey === '') throw coreErrors.tenant_required();
    return { owner, tenantKey };
  }

  /** Another owner's or tenant's endpoint returns the same 404 as one that does not exist. */
  async #find(context: Context, id: string): Promise<WebhookEndpoint> {
    const endpoint = await findOwnEndpoint(this.#db(context), await this.#scope(context), id);
    if (endpoint === null) throw webhookErrors.endpoint_not_found();
    return endpoint;
  }

  async #change<R>(context: Context, id: string, work: (tx: Db, endpoint: WebhookEndpoint) => Promise<R>): Promise<R> {
    const scope = await this.#scope(context);
    return this.#db(context).transaction(async (tx) => {
      const endpoint = await lockOwnEndpoint(tx, scope, id);
      if (endpoint === null) throw webhookErrors.endpoint_not_found();
      return work(tx, endpoint);
    }, CONFLICT_RETRIES);
  }

  /** Reported together with what the schema refuses; the verbs check again. */
  #check(context: Context, { rate_limit: rateLimit, send_traceparent: sendTraceparent, ...fields }: UpdateFields): void {
    const { url, events, description, schedule, headers } = fields;
    const given = { url, events, description, schedule, headers, rateLimit, sendTraceparent, ...this.#available };
    checkEndpointFields(webhooksOf(this.#db(context)), given);
  }

  #update(context: Context, id: string, body: UpdateFields) {
    const { is_active: isActive, rate_limit: rateLimit, send_traceparent: sendTraceparent, ...fields } = body;
    return this.#change(context, id, async (tx, before) => {
      const after = await updateEndpoint(tx, before, { ...fields, rateLimit, sendTraceparent, isActive, ...this.#available });
      await recordEndpointChange(tx, 'updated', { before, after }, author(context));
      return recordOf(tx)(after);
    });
  }

  async databaseFaults(app: App): Promise<readonly Fault[]> {
    const { name, using } = this.#options;
    return requiredDatabase(app, 'webhooks', name, using, 'webhooks');
  }

  faults(app: App): readonly Fault[] {
    const { name, tenantField, availableEvents } = this.#options;
    const faults = [...requiredModule(app, 'webhooks', name, 'webhooks()'), ...misspeltEvents(app, name, availableEvents ?? [])];
    const asksApp = this.tenantKey === WebhookEndpointController.prototype.tenantKey;
    if (tenantField === null || !asksApp || app.hasTenants) return faults;
    const message = `${name} has tenantField, but createApp has no \`tenant\` option.`;
    const hint = 'Add a tenant resolver to createApp, tenant: ({ user }) => …, or override tenantKey() of the controller.';
    return [...faults, { id: 'E013', message, hint }];
  }
}

function recordOf(db: Db): (endpoint: WebhookEndpoint) => EndpointRecord {
  const webhooks = webhooksOf(db);
  return (endpoint) => endpointRecord(webhooks, endpoint);
}

/** A receiver that verifies `v1a` needs the public key; the private one stays here. */
function withSecret(db: Db, { endpoint, secret }: CreatedEndpoint): EndpointRecord & { readonly secret: string | null } {
  return { ...recordOf(db)(endpoint), secret: endpoint.signature === 'v1a' ? null : secret };
}

function author({ principal, requestId }: Pick<Context, 'principal' | 'requestId'>) {
  return { by: principal, requestId };
}

/** One entry more than the page holds was read, to know whether there is a next one. */
function slice<Item extends { readonly id: string }>(found: readonly Item[], limit: number, count: number | null): Page<Item> {
  const items = found.slice(0, limit);
  return { items, count, next: found.length > limit ? (items.at(-1)?.id ?? null) : null };
}
