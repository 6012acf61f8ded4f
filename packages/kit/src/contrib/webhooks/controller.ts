import type { App } from '../../app/declare/module.ts';
import { requiredDatabase } from '../../app/declare/required-database.ts';
import { requiredModule } from '../../app/declare/required-module.ts';
import type { User } from '../../auth/people/principal.ts';
import { CrudController } from '../../crud/serve/controller.ts';
import type { Database } from '../../db/engine/db.ts';
import { databaseNamed } from '../../db/open/named-database.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { controllerOptions } from '../../http/declare/controller-options.ts';
import type { HandlerContext } from '../../http/declare/handler-context.ts';
import { route, type Route } from '../../http/declare/route.ts';
import type { Fault } from '../../options/fault.ts';
import { filledText, flag, listOf, nullable, oneOf, rule, sentenceRule } from '../../options/value-rule.ts';
import { hasScopes } from '../../permissions/built-ins.ts';
import { managesTenant } from '../../permissions/manages-tenant.ts';
import type { Permission } from '../../permissions/permission.ts';
import { rateFault } from '../../throttle/rate.ts';
import type { Throttle } from '../../throttle/throttle.ts';
import { userThrottle } from '../../throttle/throttles.ts';
import { webhookErrors } from './errors.ts';
import { misspeltEvents } from './misspelt-events.ts';
import { versionsOf } from './publishing/event-type.ts';
import { isEventType } from './publishing/subscription.ts';
import { endpointDeliveries } from './resources/endpoint-deliveries.ts';
import { endpointResource } from './resources/endpoints.ts';
import { ownEvents } from './resources/own-events.ts';
import { EventTypePage } from './schemas.ts';
import { webhooksOf } from './webhooks.ts';

type Context = HandlerContext<unknown, unknown, unknown, unknown, User>;

const PAGE_SIZE = 100;
// Sessions may do everything here; credentials that carry scopes, such as API keys, need the one of the route.
const permission = hasScopes({ allowUnscoped: true });
const reads = { permission, scope: 'webhooks:read' } as const;
const { url_not_allowed, invalid_events, unknown_event, invalid_endpoint, quota_exceeded } = webhookErrors;
const refusals = [url_not_allowed, invalid_events, unknown_event, invalid_endpoint] as const;

const change = { summary: 'Change a webhook endpoint, disable or enable it', raises: refusals };

const OwnEndpoints = CrudController(endpointResource, {
  permission,
  scope: 'webhooks',
  output: [
    'id',
    'tenant_key',
    'url',
    'events',
    'description',
    'is_active',
    'disabled_reason',
    'disabled_at',
    'failing_since',
    'consecutive_failures',
    'previous_secret_expires_at',
    'schedule',
    'signature',
    'public_key',
    'header_names',
    'rate_limit',
    'send_traceparent',
    'created_at',
    'updated_at',
  ],
  page: { default: PAGE_SIZE, max: PAGE_SIZE, count: 'exact', keyCursors: true },
  operations: {
    list: { summary: 'List your webhook endpoints, newest first' },
    create: {
      summary: 'Create a webhook endpoint',
      description: 'The response is the only time the signing secret is shown.',
      raises: [...refusals, quota_exceeded],
    },
    retrieve: { field: 'read', summary: 'Read a webhook endpoint' },
    partialUpdate: { ...change, field: 'edit', description: 'Fields that are left out keep their value.' },
    update: { ...change, field: 'replace', description: 'Like PATCH: fields that are left out keep their value, `is_active` too.' },
    destroy: { field: 'remove', summary: 'Delete a webhook endpoint with its deliveries' },
    'rotate-secret': {
      field: 'rotateSecret',
      description:
        'The response is the only time it is shown. Requests carry signatures of both secrets until `previous_secret_expires_at`.',
    },
  },
});

/**
 * Users manage their own webhook endpoints. Mounted where the app likes: `'/webhooks': WebhookEndpointController`. A
 * subclass may say which events exist, and serve the endpoints of a tenant instead of personal ones.
 */
export class WebhookEndpointController extends OwnEndpoints {
  static override readonly tags: readonly string[] = ['webhooks'];

  static readonly [controllerOptions] = {
    // A pattern here would be an event type that nothing publishes: what it should allow would be refused.
    availableEvents: nullable(listOf(rule('an event type, such as "order.paid" (patterns are for endpoints)', isEventType))),
    tenantField: nullable(oneOf('tenant_key')),
    tenantOwned: flag,
    liveDeliveries: flag,
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
  /**
   * `true`, with `tenantField`: endpoints belong to the tenant and not to the person who makes them. Everybody whom the permission admits sees and changes
   * them, and they stay when that person leaves. Default: false.
   */
  static readonly tenantOwned: boolean = false;
  /** The database that events are published in. */
  static readonly using: string = 'default';
  /**
   * `GET` with `Accept: text/event-stream` follows the deliveries of an endpoint. Each change of a delivery is then written to the change log: `kit migrate` creates
   * the triggers.
   */
  static readonly liveDeliveries: boolean = false;
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

  /** Personal endpoints have no tenant, whichever the request acts for. An empty key would mean those. */
  override async tenantOf(context: Context): Promise<string | null> {
    if (this.#options.tenantField === null) return null;
    const tenantKey = await this.tenantKey(context);
    if (typeof tenantKey !== 'string' || tenantKey === '') throw coreErrors.tenant_required();
    return tenantKey;
  }

  eventTypes = route.get(
    '/event-types',
    {
      ...reads,
      response: EventTypePage,
      metadata: { boundedList: 'declared types' },
      summary: 'List the types of events that may be subscribed to',
    },
    (context) => {
      const { availableEvents } = this.#options;
      const { eventTypes } = webhooksOf(this.#db(context)).settings;
      const offered = eventTypes.filter(({ name }) => availableEvents?.includes(name) !== false);
      const items = offered.map((type) => {
        const { name, description, version, deprecated, jsonSchema: schema, example } = type;
        return { name, description, version, versions: versionsOf(type, offered), deprecated, schema, example };
      });
      return { items, count: items.length, next: null, previous: null };
    },
  );

  override ping = this.wrap('ping', { throttles: this.#sends });

  override recover = this.wrap('recover', { throttles: this.#sends });

  readonly #deliveries = this.below('/:endpoint_id/deliveries', endpointDeliveries(this.#options, this.#sends));
  deliveries = this.#deliveries['list'] as Route;
  deliveryStats = this.#deliveries['stats'] as Route;
  delivery = this.#deliveries['delivery'] as Route;
  retry = this.#deliveries['retry'] as Route;

  readonly #events = this.below('/events', ownEvents(this.#options.using));
  events = this.#events['list'] as Route;
  event = this.#events['event'] as Route;

  get #options(): typeof WebhookEndpointController {
    return this.constructor as typeof WebhookEndpointController;
  }

  #db({ databases }: Pick<Context, 'databases'>): Database {
    const { using, name } = this.#options;
    return databaseNamed(databases, using, `${name}.using`);
  }

  override async databaseFaults(app: App): Promise<readonly Fault[]> {
    const { name, using } = this.#options;
    const faults = requiredDatabase(app, 'webhooks', name, using, 'webhooks');
    return faults.length > 0 ? faults : super.databaseFaults(app);
  }

  override faults(app: App): readonly Fault[] {
    const { name, tenantField, tenantOwned, availableEvents } = this.#options;
    const ownerless = {
      id: 'E013',
      message: `${name} has tenantOwned, but no tenantField.`,
      hint: "Add static override readonly tenantField = 'tenant_key'.",
    };
    const faults = [
      ...(tenantOwned && tenantField === null ? [ownerless] : []),
      ...super.faults(app),
      ...requiredModule(app, 'webhooks', name, 'webhooks()'),
      ...misspeltEvents(app, name, availableEvents ?? []),
    ];
    const asksApp = this.tenantKey === WebhookEndpointController.prototype.tenantKey;
    if (tenantField === null || !asksApp || app.hasTenants) return faults;
    const message = `${name} has tenantField, but createApp has no \`tenant\` option.`;
    const hint = 'Add a tenant resolver to createApp, tenant: ({ user }) => …, or override tenantKey() of the controller.';
    return [...faults, { id: 'E013', message, hint }];
  }
}

/**
 * Members who manage a tenant manage its webhook endpoints: each of them sees and changes all of these. They belong to the tenant, stay when the person
 * leaves who made them, and receive the events of the tenant. Mounted beside the personal ones: `'/tenant-webhooks': TenantWebhookController`.
 */
export class TenantWebhookController extends WebhookEndpointController {
  static override readonly tenantField = 'tenant_key';
  static override readonly tenantOwned: boolean = true;
  static override readonly permission: Permission = managesTenant;
}
