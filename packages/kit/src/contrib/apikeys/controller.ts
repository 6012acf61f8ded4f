import type { App } from '../../app/declare/module.ts';
import { requiredModule } from '../../app/declare/required-module.ts';
import { filter } from '../../crud/declare/filter.ts';
import { CrudController } from '../../crud/serve/controller.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { controllerOptions } from '../../http/declare/controller-options.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import type { Route } from '../../http/declare/route.ts';
import type { Fault } from '../../options/fault.ts';
import { flag, listOf, nullable, rule } from '../../options/value-rule.ts';
import { hasRecentLogin, isAuthenticated } from '../../permissions/built-ins.ts';
import { managesTenant } from '../../permissions/manages-tenant.ts';
import { all } from '../../permissions/permission.ts';
import { isScope } from '../../permissions/scope.ts';
import { apiKeyErrors } from './errors.ts';
import { notByApiKey } from './request/permission.ts';
import { apiKeyResource, type KeyControllerOptions, TENANT } from './resource.ts';
import { serviceUserResource } from './service/resource.ts';

const { key_limit_reached, key_revoked, keys_cannot_manage_keys, impersonated_session } = apiKeyErrors;
/** For what hands out a credential: an open browser is not enough. */
const byPresentCaller = { permission: hasRecentLogin } as const;
const { recent_login_required } = coreErrors;

/** A guard of the base: neither a subclass nor a route taken out of its class can leave it behind. */
const OwnKeys = CrudController(apiKeyResource, {
  permission: all(notByApiKey, isAuthenticated),
  output: [
    'id',
    'tenant_id',
    'name',
    'prefix',
    'scopes',
    'rate_limit',
    'quota',
    'created_at',
    'last_used_at',
    'expires_at',
    'revoked_at',
    'previous_expires_at',
    'previous_last_used_at',
    'state',
  ],
  filters: {
    state: ['eq'],
    expires_before: filter(jsonSchema<string>({ type: 'string', format: 'date-time' }), (at) => ({ expires_at: { lt: new Date(at) } }), {
      description: 'Keys that stop working before this time: with `state=active`, those that need a later expiry.',
    }),
  },
  queryMethod: false,
  page: { style: 'page', default: 50, max: 100 },
  ordering: { by: [], default: ['-created_at'] },
  operations: {
    list: { summary: 'List your API keys, newest first', raises: [keys_cannot_manage_keys] },
    create: {
      ...byPresentCaller,
      raises: [key_limit_reached, keys_cannot_manage_keys, impersonated_session, recent_login_required],
      summary: 'Create an API key',
      description: 'The response is the only time the key itself is shown.',
    },
    retrieve: { field: 'read', summary: 'Read one of your API keys', raises: [keys_cannot_manage_keys] },
    update: false,
    partialUpdate: {
      ...byPresentCaller,
      field: 'edit',
      raises: [key_revoked, key_limit_reached, keys_cannot_manage_keys, recent_login_required],
      summary: 'Rename an API key, change its scopes or expiry',
    },
    rotate: {
      raises: [keys_cannot_manage_keys],
      description: 'The old secret stops working immediately, or after `grace_seconds`. The new key is shown only in this response.',
    },
    destroy: {
      field: 'revoke',
      raises: [keys_cannot_manage_keys],
      summary: 'Revoke an API key permanently',
      description: 'Idempotent: revoking a key again changes nothing.',
    },
  },
});

/**
 * Users manage their own keys. Mounted where the app likes: `'/api-keys': ApiKeyController`. A subclass may say which scopes may be
 * granted and whether owners may set the rate limit of their keys.
 */
export class ApiKeyController extends OwnKeys {
  static override readonly tags: readonly string[] = ['api keys'];

  static readonly [controllerOptions] = {
    grantableScopes: nullable(listOf(rule('a scope: "*", "orders:*" or "orders:read"', isScope))),
    allowRateLimit: flag,
    live: flag,
  };

  /** Scopes that may be put on a key. Unset: what mounted routes require; wildcards for staff only. */
  static readonly grantableScopes: KeyControllerOptions['grantableScopes'] = null;
  /** Whether `rate_limit` and `quota` may be set over HTTP. */
  static readonly allowRateLimit: KeyControllerOptions['allowRateLimit'] = false;
  /** `GET` with `Accept: text/event-stream` follows the list. Each change of a key is then written to the change log: `kit migrate` creates the triggers. */
  static readonly live: boolean = false;

  override faults(app: App): readonly Fault[] {
    return [...requiredModule(app, 'apikeys', this.constructor.name, 'apiKeys()'), ...super.faults(app)];
  }
}

const managed = all(notByApiKey, managesTenant);

class ServiceKeys extends CrudController(apiKeyResource, {
  audience: TENANT,
  permission: managed,
  output: [
    'id',
    'owner_id',
    'name',
    'prefix',
    'scopes',
    'created_at',
    'last_used_at',
    'expires_at',
    'revoked_at',
    'previous_expires_at',
    'previous_last_used_at',
    'state',
  ],
  filters: { owner_id: ['eq'], state: ['eq'] },
  queryMethod: false,
  page: { style: 'page', default: 50, max: 100 },
  ordering: { by: [], default: ['-created_at'] },
  operations: {
    list: { summary: 'List the API keys of service users, newest first', raises: [keys_cannot_manage_keys] },
    create: false,
    retrieve: false,
    update: false,
    partialUpdate: false,
    rotate: { summary: 'Give an API key of a service user a new secret', raises: [keys_cannot_manage_keys] },
    destroy: { summary: 'Revoke an API key of a service user permanently', raises: [keys_cannot_manage_keys] },
  },
}) {}

const ServiceUsers = CrudController(serviceUserResource, {
  permission: managed,
  expand: ['creator'],
  page: { default: 50, max: 100 },
  operations: {
    list: { summary: 'List the service users of the tenant', raises: [keys_cannot_manage_keys] },
    create: {
      ...byPresentCaller,
      raises: [apiKeyErrors.service_user_limit_reached, keys_cannot_manage_keys, recent_login_required],
      summary: 'Create a service user: a member of the tenant that nobody logs in as',
    },
    retrieve: { field: 'read', summary: 'Read a service user', raises: [keys_cannot_manage_keys] },
    update: false,
    partialUpdate: false,
    destroy: { summary: 'Delete a service user with its API keys', raises: [keys_cannot_manage_keys] },
    'issue-key': {
      field: 'issueKey',
      raises: [keys_cannot_manage_keys],
      description: 'The response is the only time the key itself is shown.',
    },
  },
});

/**
 * Those who manage a tenant manage its service users, whose API keys stay when people leave. Mounted where the app likes:
 * `'/service-users': ServiceUserController`.
 */
export class ServiceUserController extends ServiceUsers {
  static override readonly tags: readonly string[] = ['service users'];
  static readonly [controllerOptions] = {};

  readonly #keys = this.below('/keys', new ServiceKeys());
  keys = this.#keys['list'] as Route;
  rotateKey = this.#keys['rotate'] as Route;
  revokeKey = this.#keys['destroy'] as Route;

  override faults(app: App): readonly Fault[] {
    const { name } = this.constructor;
    const { registry } = app;
    const add = (message: string, hint: string): Fault => ({ id: 'E013', message: `${name} ${message}`, hint });
    return [
      ...requiredModule(app, 'apikeys', name, 'apiKeys()'),
      ...super.faults(app),
      ...(registry.usersWithoutLogin === null
        ? [add('needs a module that stores the users.', 'Add accounts() or betterAuth() to the modules.')]
        : []),
      ...(registry.tenants.directory?.serviceMembers === undefined
        ? [add('needs a module that stores the tenants.', 'Add tenants() or the organizations of better-auth.')]
        : []),
    ];
  }
}
