import type { Principal, User } from '../../auth/people/principal.ts';
import { sameId } from '../../auth/people/same-id.ts';
import { resource } from '../../crud/checks/declare-resource.ts';
import type { CrudCaller } from '../../crud/declare/crud-caller.ts';
import { derived } from '../../crud/declare/derived.ts';
import { visibleTo, writableBy } from '../../crud/declare/field-rule.ts';
import { people } from '../../crud/declare/people.ts';
import { STAFF, type WriteContext } from '../../crud/declare/resource.ts';
import { DerivedState } from '../../crud/policy/derived-state.ts';
import type { Db } from '../../db/engine/db.ts';
import { whereSql } from '../../db/sql/where/where-sql.ts';
import type { Where } from '../../db/sql/where/where.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { FieldError } from '../../errors/kit-error.ts';
import { hasRecentLogin, isStaff } from '../../permissions/built-ins.ts';
import { Permission } from '../../permissions/permission.ts';
import { apiKeyErrors } from './errors.ts';
import type { ApiKey } from './key/api-key.ts';
import { defaultGrantable, grantFaults } from './key/grant.ts';
import { createApiKey } from './manage/create.ts';
import { revokeApiKey } from './manage/revoke.ts';
import { rotateApiKey } from './manage/rotate.ts';
import { updateApiKey } from './manage/update.ts';
import { apiKeys } from './models.ts';
import { fieldFaults } from './rows/field-rules.ts';
import { RevokeBody, RotateBody } from './schemas.ts';
import { keyringOf } from './verify/keyring.ts';

/** Statics of a controller of keys. */
export interface KeyControllerOptions {
  readonly grantableScopes: readonly string[] | null;
  readonly allowRateLimit: boolean;
}

/** The fields of a key that callers send. */
type KeyInput = Partial<Pick<ApiKey, 'name' | 'scopes' | 'expires_at' | 'rate_limit' | 'quota'>>;

/** The holder of a superuser's narrow key must not be able to widen it to the superuser's whole power. Revoking takes away only. */
export async function mayChangeKeyOf(db: Db, user: User, owner: string): Promise<boolean> {
  if (user.is_superuser || sameId(owner, user.id)) return true;
  return (await keyringOf(db).users.findById(db, owner))?.is_superuser !== true;
}

const notOfAnotherSuperuser = new Permission({
  name: 'notOfAnotherSuperuser',
  requires: ['owner_id'],
  evaluate({ db, user }, key) {
    if (user === null) return false;
    return key === undefined ? user.is_superuser || 'unknown' : mayChangeKeyOf(db, user, (key as Pick<ApiKey, 'owner_id'>).owner_id);
  },
});
const changeable = writableBy(notOfAnotherSuperuser);

/** The same decisions as `keyState` of a key in memory: the states are compared on both. */
const keyState = derived(['revoked', 'expired', 'active', 'owner_inactive'], {
  revoked: () => ({ revoked_at: { isnull: false } }),
  expired: ({ now }) => ({ expires_at: { lte: now } }),
  active: () => ({ owner: { is: { is_active: true } } }),
});

const keyStates = new DerivedState(keyState, apiKeys, {});

/** The audience of those who manage a tenant. */
export const TENANT = 'tenant';

/** Keys that no person owns, of one tenant. */
function keysOfServiceUsers(tenant: string | null): Where<(typeof apiKeys)['columns']> {
  if (tenant === null) return whereSql('1 = 0');
  const text = 'this.tenant_id = $1 and exists (select 1 from service_users s where s.user_id = this.owner_id and s.tenant_id = $1)';
  return whereSql(text, [tenant]);
}

/** A credential for one tenant reaches the keys of that tenant alone: the secret of another key would lead out of it. */
function withinBounds(principal: Principal | null): Where<(typeof apiKeys)['columns']> | boolean {
  const bound = principal?.boundTenant ?? null;
  return bound === null || { tenant_id: bound };
}

/** Keys that have this state now. */
export function keysInState(state: string, now: Date): Where {
  return keyStates.isOneOf([state], now);
}

/** The keys of users, which the functions of this module write: controllers, the admin site and programs call them by its hooks. */
export const apiKeyResource = resource(apiKeys, {
  changes: 'trigger',
  name: 'api_key',
  missing: apiKeyErrors.api_key_not_found,
  owner: 'owner_id',
  rows: ({ principal }) => withinBounds(principal),
  audiences: { [STAFF]: { rows: true }, [TENANT]: { rows: ({ tenant }: Pick<CrudCaller, 'tenant'>) => keysOfServiceUsers(tenant) } },
  input: ['name', 'scopes', 'rate_limit', 'quota', 'expires_at'],
  hidden: ['digest', 'previous_digest'],
  fields: {
    name: changeable,
    scopes: changeable,
    rate_limit: changeable,
    quota: changeable,
    expires_at: changeable,
    revoked_reason: visibleTo(isStaff),
  },
  relations: { owner: people('owner_id') },
  computed: { state: keyState },
  once: { key: { on: ['create', 'rotate'], description: 'The whole key. Shown this once.' } },
  validate: ({ input, before, caller, db }) => keyFaults(db, caller, input, before),
  writes: 'verbs',
  hooks: {
    async create({ input, user, once, ...context }) {
      const { name, scopes, ...others } = fieldsOf(input as KeyInput);
      const { apiKey, raw } = await createApiKey(context.tx, {
        user: user as User,
        tenant: context.tenant ?? undefined,
        name: name as string,
        scopes: scopes as readonly string[],
        ...others,
        ...by(context),
      });
      once('key', raw);
      return apiKey as never;
    },
    async update({ before, input, ...context }) {
      const { rateLimit, quota, ...fields } = fieldsOf(input as KeyInput);
      // Who may not change the limit may send the one that there is.
      const changed = { ...(rateLimit === before.rate_limit ? {} : { rateLimit }), ...(quota === before.quota ? {} : { quota }) };
      return (await updateApiKey(context.tx, before.id, { ...fields, ...changed, ...by(context) })) as never;
    },
    destroy: ({ before, ...context }) => revokeApiKey(context.tx, before.id, by(context)),
  },
  actions: {
    rotate: {
      input: RotateBody,
      // For what hands out a credential: an open browser is not enough.
      permission: hasRecentLogin,
      raises: [apiKeyErrors.key_revoked, apiKeyErrors.impersonated_session, coreErrors.recent_login_required],
      summary: 'Give an API key a new secret',
      async run({ row, input, once, ...context }) {
        const { tx, caller } = context;
        const check = ({ scopes }: ApiKey) => requireGrantable(tx, caller, scopes);
        once(
          'key',
          (
            await rotateApiKey(tx, row.id, {
              graceSeconds: input.grace_seconds,
              tenant: unboundTenant(row, context),
              check,
              ...by(context),
            })
          ).raw,
        );
      },
    },
    revoke: {
      on: 'selection',
      audience: STAFF,
      input: RevokeBody,
      summary: 'Revoke an API key permanently',
      run: ({ row, input, ...context }) => revokeApiKey(context.tx, row.id, { ...input, ...by(context) }),
    },
  },
});

/** The values that a key cannot have, and the scopes that the caller cannot grant. */
export function keyFaults(
  db: Db,
  caller: CrudCaller,
  input: KeyInput,
  before: Pick<ApiKey, 'scopes' | 'rate_limit' | 'quota' | 'expires_at'> | null,
): FieldError[] {
  const faults = [...limitFaults(caller, input, before), ...fieldFaults(fieldsOf(input), caller.now)];
  const granted = input.scopes ?? (before !== null && livesLonger(before, input.expires_at) ? before.scopes : []);
  return [...faults, ...scopeFaults(db, caller, granted)];
}

/** Owners do not widen what limits them. Null is what a key has without a limit. */
function limitFaults(
  { audience, controller }: CrudCaller,
  input: KeyInput,
  before: Pick<ApiKey, 'rate_limit' | 'quota'> | null,
): FieldError[] {
  const { allowRateLimit = false } = (controller ?? {}) as Partial<KeyControllerOptions>;
  if (audience === STAFF || allowRateLimit) return [];
  return (['rate_limit', 'quota'] as const)
    .filter((limit) => input[limit] !== undefined && !(input[limit] === null && (before?.[limit] ?? null) === null))
    .map((limit) => ({
      location: ['body', limit],
      code: 'not_allowed',
      message: limit === 'quota' ? 'The quota cannot be set here.' : 'The rate limit cannot be set here.',
    }));
}

function scopeFaults(db: Db, { user, principal, controller }: CrudCaller, scopes: readonly string[]): FieldError[] {
  const { grantableScopes = null } = (controller ?? {}) as Partial<KeyControllerOptions>;
  const grantable = grantableScopes ?? defaultGrantable(keyringOf(db).routeScopes(), { is_staff: user?.is_staff === true });
  const faults = grantFaults(scopes, grantable);
  // An access token cannot hand out scopes that it does not carry.
  const own = principal?.scopes ?? null;
  return own === null || faults.length > 0 ? faults : grantFaults(scopes, own);
}

function requireGrantable(db: Db, caller: CrudCaller, scopes: readonly string[]): void {
  const errors = scopeFaults(db, caller, scopes);
  if (errors.length > 0) throw coreErrors.validation_error({ errors });
}

/** A longer life hands out the key's scopes again; a shorter one takes away only. */
function livesLonger({ expires_at }: Pick<ApiKey, 'expires_at'>, expiresAt: Date | null | undefined): boolean {
  if (expiresAt === undefined || expires_at === null) return false;
  return expiresAt === null || expiresAt > expires_at;
}

/** A key that is not bound is bound to the tenant of the request. */
function unboundTenant({ tenant_id }: Pick<ApiKey, 'tenant_id'>, { tenant }: Pick<WriteContext, 'tenant'>): string | undefined {
  return tenant_id === null ? (tenant ?? undefined) : undefined;
}

/** The fields of a request in the words of programs. */
function fieldsOf({ name, scopes, expires_at: expiresAt, rate_limit: rateLimit, quota }: KeyInput) {
  return { name, scopes, expiresAt, rateLimit, quota };
}

function by({ principal, requestId }: Pick<WriteContext, 'principal' | 'requestId'>) {
  return { by: principal, requestId };
}
