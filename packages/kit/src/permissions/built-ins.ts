import type { User } from '../auth/people/principal.ts';
import { coreErrors } from '../errors/core-errors.ts';
import { defaultDenial, Permission, type PermissionContext, type RowCondition, type Rule } from './permission.ts';
import { ofCaller } from './of-caller.ts';
import { scopeCovers } from './scope.ts';
import { tenantRequired } from './tenant-required.ts';
import { type OptionRules, readOptions } from '../options/read-options.ts';
import { aFunction, filledText, flag, listOf } from '../options/value-rule.ts';
import { sameId } from '../auth/people/same-id.ts';

/** Methods that only read. QUERY is safe although it has a body. */
export const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'QUERY']);

/** Of permissions about the caller alone. */
const NO_COLUMNS: readonly string[] = Object.freeze([]);

/** Admits every caller, also anonymous ones. For routes that are public on purpose. */
export const allowAny = ofCaller(new Permission({ name: 'allowAny', kind: 'allow_any', requires: NO_COLUMNS, evaluate: () => true }));

/** Admits no caller. */
export const denyAll = ofCaller(
  new Permission({
    name: 'denyAll',
    kind: 'deny_all',
    requires: NO_COLUMNS,
    evaluate: () => false,
    denial: () => coreErrors.permission_denied(),
  }),
);

/** Admits callers with valid credentials. In handlers `user` is then never null. */
export const isAuthenticated = ofCaller(
  new Permission<User>({
    name: 'isAuthenticated',
    kind: 'is_authenticated',
    requires: NO_COLUMNS,
    evaluate: ({ principal }) => principal !== null,
  }),
);

/** A member of staff whose second factor is missing learns that, not that the account has no rights. */
function staffDenial(context: PermissionContext) {
  return context.principal?.secondFactor === 'missing' ? coreErrors.second_factor_required() : defaultDenial(context);
}

/** Admits users with staff access (`is_staff`). */
export const isStaff = ofCaller(
  new Permission<User>({
    name: 'isStaff',
    kind: 'is_staff',
    requires: NO_COLUMNS,
    evaluate: ({ user }) => user !== null && user.is_staff,
    denial: staffDenial,
  }),
);

/** Admits superusers (`is_superuser`). */
export const isSuperuser = ofCaller(
  new Permission<User>({
    name: 'isSuperuser',
    kind: 'is_superuser',
    requires: NO_COLUMNS,
    evaluate: ({ user }) => user !== null && user.is_superuser,
    denial: staffDenial,
  }),
);

/**
 * The person at the browser logged in, or proved to be there, within the last minutes. Holds for credentials of programs, which nobody can
 * leave open on a desk.
 */
export const hasRecentLogin = new Permission({
  name: 'hasRecentLogin',
  kind: 'has_recent_login',
  requires: NO_COLUMNS,
  evaluate: ({ principal }) => principal?.recentLogin !== false,
  denial: () => coreErrors.recent_login_required(),
});

/** Admits requests that only read: GET, HEAD and QUERY. */
export const isReadOnly = ofCaller(
  new Permission({
    name: 'isReadOnly',
    kind: 'is_read_only',
    requires: NO_COLUMNS,
    evaluate: ({ method }) => safeMethods.has(method),
    // Logging in does not turn a write into a read.
    denial: () => coreErrors.permission_denied({ detail: 'Only reading is allowed here.' }),
  }),
);

export interface IsOwnerOptions {
  /** Answer a foreign object exactly like a missing one (404) instead of 403. */
  readonly hide?: boolean;
}

const isOwnerRules: OptionRules<IsOwnerOptions> = { hide: flag };

/**
 * The loaded object belongs to the caller. Unknown until `authorize(object)`; an anonymous caller owns nothing.
 *
 * @example
 * ```ts
 * class OrderController extends Controller {
 *   one = route.get('/:id', { permission: isOwner(), response: OrderOut }, async ({ db, params, authorize }) =>
 *     authorize(await find(db, orders, params.id)),
 *   );
 * }
 * ```
 */
export function isOwner(field = 'owner_id', options: IsOwnerOptions = {}): Permission<User> {
  if (typeof field !== 'string') throw new TypeError('isOwner(): the first argument is the name of the column, the second the options.');
  const { hide = false } = readOptions('isOwner()', options, isOwnerRules);
  return ofCaller(
    new Permission<User>({
      name: field === 'owner_id' ? 'isOwner' : `isOwner(${field})`,
      kind: 'is_owner',
      requires: [field],
      evaluate: ({ user }, object) => {
        if (user === null) return false;
        if (object === undefined) return 'unknown';
        if (typeof object !== 'object' || object === null) return false;
        return sameId((object as Record<string, unknown>)[field], user.id);
      },
      rows: ({ user }) => (user === null ? false : { [field]: user.id }),
      denial: ({ user }) => {
        if (user === null) return coreErrors.not_authenticated();
        return hide ? coreErrors.not_found() : coreErrors.permission_denied();
      },
    }),
  );
}

export interface HasScopesOptions {
  /** Let credentials that carry no scopes (sessions) use scoped operations. */
  readonly allowUnscoped?: boolean;
}

const hasScopesRules: OptionRules<HasScopesOptions> = { allowUnscoped: flag };

/**
 * The credential carries the operation's `scope`. An operation without a scope accepts every credential, but never an anonymous caller.
 * A credential that carries no scopes at all is refused on a scoped operation unless `allowUnscoped`.
 *
 * @example
 * ```ts
 * class OrderController extends Controller {
 *   list = route.get('/', { permission: hasScopes(), scope: 'orders:read', response: page(OrderOut) }, ({ db, user }) => ordersOf(db, user));
 * }
 * ```
 */
export function hasScopes(options: HasScopesOptions = {}): Permission<User> {
  const { allowUnscoped = false } = readOptions('hasScopes()', options, hasScopesRules);
  return ofCaller(
    new Permission<User>({
      name: allowUnscoped ? 'hasScopes(allowUnscoped)' : 'hasScopes',
      kind: 'has_scopes',
      requires: NO_COLUMNS,
      evaluate: ({ principal, scope }) => {
        if (principal === null) return false;
        if (scope === undefined) return true;
        return principal.scopes === null ? allowUnscoped : scopeCovers(principal.scopes, scope);
      },
      denial: scopeDenial,
    }),
  );
}

function scopeDenial({ principal, scope }: PermissionContext) {
  if (principal === null) return coreErrors.not_authenticated();
  const extensions = { required_scope: scope };
  if (principal.scopes === null) return coreErrors.scope_required({ extensions });
  // RFC 6750 3.1: a client of an identity provider learns from the challenge which scope to ask for.
  const headers =
    principal.scheme === 'jwt' ? { 'www-authenticate': `Bearer realm="api", error="insufficient_scope", scope="${scope}"` } : {};
  return coreErrors.insufficient_scope({ extensions, headers });
}

/** The caller has one of these roles in the tenant of the request: `createApp({ tenant, membership })`. Without a tenant nobody has a role. */
export function hasRole(...roles: readonly [string, ...string[]]): Permission<User> {
  if (roles.length === 0 || roles.some((role) => typeof role !== 'string' || role === ''))
    throw new TypeError(`hasRole() takes names of roles, such as hasRole('admin').`);
  return ofCaller(
    new Permission<User>({
      name: `hasRole(${roles.join(', ')})`,
      kind: 'has_role',
      requires: NO_COLUMNS,
      async evaluate(context) {
        if (context.user === null) return false;
        const held = (await context.membership)?.roles ?? [];
        if (context.isTenantOpen === true) return 'unknown';
        return roles.some((role) => held.includes(role));
      },
      // Without a tenant no role could help.
      async denial(context) {
        return context.user !== null && (await context.tenant) === null ? tenantRequired(context) : defaultDenial(context);
      },
    }),
  );
}

export interface HasRuleOptions {
  /** Which rows of a table the rule holds for, so that it can guard a list: the same decision as a condition, `({ user }) => ({ team: user?.id })`. */
  readonly rows?: (context: PermissionContext) => RowCondition | Promise<RowCondition>;
  /** The columns of the object that the rule reads, so that a list selects no others for it. Default: every column. */
  readonly requires?: readonly string[];
}

const hasRuleRules: OptionRules<HasRuleOptions> = { rows: aFunction, requires: listOf(filledText) };

/**
 * A rule of the application: a function, or the name of one given to `createApp({ rules })`.
 *
 * @example
 * ```ts
 * const isSupport = hasRule(({ user }) => user?.username.endsWith('@support') ?? false);
 * ```
 */
export function hasRule(rule: Rule | string, options: HasRuleOptions = {}): Permission {
  const { rows, requires } = readOptions('hasRule()', options, hasRuleRules);
  const kind = 'has_rule';
  const more = { ...(rows === undefined ? {} : { rows }), ...(requires === undefined ? {} : { requires }) };
  if (typeof rule === 'function') {
    return new Permission({ name: `hasRule(${rule.name || 'anonymous'})`, kind, evaluate: rule, ...more });
  }
  return new Permission({
    name: `hasRule(${rule})`,
    kind,
    rule,
    ...more,
    evaluate: (context, object) => {
      const named = context.rules?.[rule];
      if (named === undefined) throw new Error(`no rule named "${rule}": give it to createApp({ rules: { '${rule}': … } })`);
      return named(context, object);
    },
  });
}
