import type { Principal, User } from '../../auth/people/principal.ts';
import type { Db } from '../../db/engine/db.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { FieldError } from '../../errors/kit-error.ts';
import { Controller } from '../../http/compile/controller.ts';
import { route } from '../../http/declare/route.ts';
import { hasRecentLogin, isAuthenticated } from '../../permissions/built-ins.ts';
import { all, type Permission } from '../../permissions/permission.ts';
import { type ApiKey, apiKeyRecord, type ApiKeyRecord } from './key/api-key.ts';
import { createApiKey, type IssuedApiKey } from './manage/create.ts';
import { apiKeyErrors } from './errors.ts';
import { fieldFaults, type KeyFields } from './rows/field-rules.ts';
import { defaultGrantable, grantFaults } from './key/grant.ts';
import { keyringOf } from './verify/keyring.ts';
import { notByApiKey } from './request/permission.ts';
import { revokeApiKey } from './manage/revoke.ts';
import { rotateApiKey } from './manage/rotate.ts';
import { type CreateFields, CreateBody, EditBody, IssuedKey, KeyId, KeyPage, KeyRecord, ListQuery, RotateBody } from './schemas.ts';
import { findKey, listKeys } from './rows/store.ts';
import { updateApiKey } from './manage/update.ts';
import { controllerOptions } from '../../http/declare/controller-options.ts';
import { flag, listOf, nullable, rule } from '../../options/value-rule.ts';
import { isScope } from '../../permissions/scope.ts';
import { sameId } from '../../auth/people/same-id.ts';
import type { App } from '../../app/declare/module.ts';
import { requiredModule } from '../../app/declare/required-module.ts';
import type { Fault } from '../../options/fault.ts';

/** Entries of a page: unless asked otherwise, and at most. */
const PAGE_SIZE = 50;
const PAGE_SIZE_MAX = 100;

/** On the class and on every route: neither a subclass nor a route taken out of its class can leave the guard behind. */
const permission = all(notByApiKey, isAuthenticated);
/** For what hands out a credential: an open browser is not enough. */
const byPresentCaller = all(permission, hasRecentLogin);

const scope = rule('a scope: "*", "orders:*" or "orders:read"', isScope);

const RATE_LIMIT_FAULTS: FieldError[] = [
  { location: ['body', 'rate_limit'], code: 'not_allowed', message: 'The rate limit cannot be set here.' },
];

interface Caller {
  readonly db: Db;
  readonly user: User;
  readonly principal: Principal;
  readonly requestId: string;
}

/**
 * Users manage their own keys. Mounted where the app likes: `'/api-keys': ApiKeyController`. A subclass may say which scopes may be
 * granted and whether owners may set the rate limit of their keys.
 */
export class ApiKeyController extends Controller {
  static override readonly tags: readonly string[] = ['api keys'];
  static override readonly permission: Permission = permission;

  static readonly [controllerOptions] = { grantableScopes: nullable(listOf(scope)), allowRateLimit: flag };

  /** Scopes that may be put on a key. Unset: what mounted routes require; wildcards for staff only. */
  static readonly grantableScopes: readonly string[] | null = null;
  /** Whether `rate_limit` may be set over HTTP. */
  static readonly allowRateLimit: boolean = false;

  list = route.get(
    '/',
    {
      query: ListQuery,
      response: KeyPage,
      permission,
      raises: [apiKeyErrors.keys_cannot_manage_keys],
      summary: 'List your API keys, newest first',
    },
    async ({ db, user, query, clock }) => {
      const now = clock.now();
      const { page = 1, page_size = PAGE_SIZE, state } = query;
      const limit = Math.min(page_size, PAGE_SIZE_MAX);
      const found = await listKeys(db, keyringOf(db).statements, { ownerId: user.id, state }, { now, limit, offset: (page - 1) * limit });
      return { items: found.keys.map((key) => apiKeyRecord(key, now)), count: found.count };
    },
  );

  create = route.post(
    '/',
    {
      body: CreateBody,
      validate: (body, { db, principal }) => this.#faults(db, principal, body),
      response: IssuedKey,
      status: 201,
      permission: byPresentCaller,
      raises: [
        apiKeyErrors.key_limit_reached,
        apiKeyErrors.keys_cannot_manage_keys,
        apiKeyErrors.impersonated_session,
        coreErrors.recent_login_required,
      ],
      summary: 'Create an API key',
      description: 'The response is the only time the key itself is shown.',
    },
    async ({ body, user, db, principal, requestId, reply }) => {
      const fields = this.#fields(body);
      const { name, scopes } = body;
      this.#check(db, principal, { name, scopes, ...fields }, scopes);
      void reply.header('cache-control', 'no-store');
      return issued(db, await createApiKey(db, { user, name, scopes, ...fields, by: principal, requestId }));
    },
  );

  read = route.get(
    '/:id',
    {
      params: KeyId,
      response: KeyRecord,
      permission,
      raises: [apiKeyErrors.api_key_not_found, apiKeyErrors.keys_cannot_manage_keys],
      summary: 'Read one of your API keys',
    },
    async ({ db, user, params }) => record(db, await ownKey({ db, user }, params.id)),
  );

  edit = route.patch(
    '/:id',
    {
      params: KeyId,
      body: EditBody,
      validate: (body, { db, principal }) => this.#faults(db, principal, body),
      response: KeyRecord,
      permission: byPresentCaller,
      raises: [
        apiKeyErrors.api_key_not_found,
        apiKeyErrors.key_revoked,
        apiKeyErrors.key_limit_reached,
        apiKeyErrors.keys_cannot_manage_keys,
        coreErrors.recent_login_required,
      ],
      summary: 'Rename an API key, change its scopes or expiry',
    },
    async ({ params, body, user, db, principal, requestId }) => {
      const key = await ownKey({ db, user }, params.id);
      const { name, scopes, rate_limit: limit } = body;
      if (limit === null && key.rate_limit !== null && !this.#options.allowRateLimit) throw invalid(RATE_LIMIT_FAULTS);
      const edit = { name, scopes, ...this.#fields(body) };
      this.#check(db, principal, edit, scopes ?? (livesLonger(key, edit.expiresAt) ? key.scopes : []));
      return record(db, await updateApiKey(db, key, { ...edit, by: principal, requestId }));
    },
  );

  rotate = route.post(
    '/:id/rotate',
    {
      params: KeyId,
      body: RotateBody,
      response: IssuedKey,
      permission: byPresentCaller,
      raises: [
        apiKeyErrors.api_key_not_found,
        apiKeyErrors.key_revoked,
        apiKeyErrors.keys_cannot_manage_keys,
        apiKeyErrors.impersonated_session,
        coreErrors.recent_login_required,
      ],
      summary: 'Give an API key a new secret',
      description: 'The old secret stops working immediately, or after `grace_seconds`. The new key is shown only in this response.',
    },
    async ({ params, body, user, db, principal, requestId, reply }) => {
      const key = await ownKey({ db, user }, params.id);
      const check = ({ scopes }: ApiKey) => this.#check(db, principal, {}, scopes);
      void reply.header('cache-control', 'no-store');
      return issued(db, await rotateApiKey(db, key, { graceSeconds: body.grace_seconds, check, by: principal, requestId }));
    },
  );

  revoke = route.delete(
    '/:id',
    {
      params: KeyId,
      permission,
      raises: [apiKeyErrors.api_key_not_found, apiKeyErrors.keys_cannot_manage_keys],
      summary: 'Revoke an API key permanently',
      description: 'Idempotent: revoking a key again changes nothing.',
    },
    async ({ params, user, db, principal, requestId }) => {
      await revokeApiKey(db, await ownKey({ db, user }, params.id), { by: principal, requestId });
    },
  );

  get #options(): typeof ApiKeyController {
    return this.constructor as typeof ApiKeyController;
  }

  /** What is wrong with the members that the schema accepts: reported together with what the schema refuses. */
  #faults(db: Db, principal: Principal, body: Partial<CreateFields>): readonly FieldError[] {
    const { name, scopes } = body;
    return [...this.#rateLimitFaults(body), ...this.#ruleFaults(db, principal, { name, scopes, ...fieldsOf(body) }, scopes ?? [])];
  }

  #rateLimitFaults({ rate_limit }: Partial<CreateFields>): FieldError[] {
    // Null is what a key has without a limit; whether a limit is taken away is known when the key is.
    if (rate_limit === undefined || rate_limit === null || this.#options.allowRateLimit) return [];
    return RATE_LIMIT_FAULTS;
  }

  /** Here too, beside `validate`: a guard must not depend on an option of the route. */
  #fields(body: Partial<CreateFields>): OptionalFields {
    const faults = this.#rateLimitFaults(body);
    if (faults.length > 0) throw invalid(faults);
    const { rate_limit: _limit, ...others } = body;
    return fieldsOf(this.#options.allowRateLimit ? body : others);
  }

  #ruleFaults(db: Db, { user, scopes: own }: Principal, fields: KeyFields, granted: readonly string[]): FieldError[] {
    const { clock, routeScopes } = keyringOf(db);
    const grantable = this.#options.grantableScopes ?? defaultGrantable(routeScopes(), user);
    const faults = [...fieldFaults(fields, clock.now()), ...grantFaults(granted, grantable)];
    // An access token cannot hand out scopes that it does not carry.
    return own === null || faults.length > 0 ? faults : grantFaults(granted, own);
  }
  /** Every fault at once: of the fields themselves, and of scopes that the caller may not grant. */
  #check(db: Db, principal: Principal, fields: KeyFields, granted: readonly string[]): void {
    const faults = this.#ruleFaults(db, principal, fields, granted);
    if (faults.length > 0) throw invalid(faults);
  }

  faults(app: App): readonly Fault[] {
    return requiredModule(app, 'apikeys', this.constructor.name, 'apiKeys()');
  }
}

interface OptionalFields {
  readonly expiresAt?: Date | null;
  readonly rateLimit?: string | null;
}

/** The optional fields of a body in the words of programs. */
function fieldsOf({ expires_at, rate_limit }: Partial<CreateFields>): OptionalFields {
  return {
    ...(expires_at === undefined ? {} : { expiresAt: expires_at === null ? null : new Date(expires_at) }),
    ...(rate_limit === undefined ? {} : { rateLimit: rate_limit }),
  };
}

/** A longer life hands out the key's scopes again; a shorter one takes away only. */
function livesLonger({ expires_at }: ApiKey, expiresAt: Date | null | undefined): boolean {
  if (expiresAt === undefined || expires_at === null) return false;
  return expiresAt === null || expiresAt > expires_at;
}

function invalid(errors: readonly FieldError[]) {
  return coreErrors.validation_error({ errors });
}

/** Another user's key returns the same 404 as one that does not exist. */
async function ownKey({ db, user }: Pick<Caller, 'db' | 'user'>, id: string): Promise<ApiKey> {
  const key = await findKey(db, keyringOf(db).statements, 'id', id.toLowerCase());
  if (key === null || !sameId(key.owner_id, user.id)) throw apiKeyErrors.api_key_not_found();
  return key;
}

function record(db: Db, key: ApiKey): ApiKeyRecord {
  return apiKeyRecord(key, keyringOf(db).clock.now());
}

function issued(db: Db, { apiKey, raw }: IssuedApiKey): ApiKeyRecord & { readonly key: string } {
  return { ...record(db, apiKey), key: raw };
}
