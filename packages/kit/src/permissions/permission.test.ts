import { describe, expect, expectTypeOf, test } from 'vitest';
import type { Principal, User } from '../auth/people/principal.ts';
import type { Db } from '../db/engine/db.ts';
import { coreErrors } from '../errors/core-errors.ts';
import { allowAny, denyAll, hasRule, hasScopes, isAuthenticated, isOwner, isReadOnly, isStaff, isSuperuser } from './built-ins.ts';
import { all, any, includesKind, not, Permission, rulesOf, type PermissionContext, type Verdict } from './permission.ts';

const ann: User = { id: 'ann', username: 'ann', email: null, is_active: true, is_staff: false, is_superuser: false };
const verdicts: readonly Verdict[] = [true, false, 'unknown'];

function context(overrides: Partial<PermissionContext> & { scopes?: readonly string[] | null } = {}): PermissionContext {
  const { scopes = null, ...rest } = overrides;
  const user = rest.user === undefined ? ann : rest.user;
  const principal: Principal | null = user === null ? null : { user, scheme: 'test', scopes };
  return { method: 'GET', url: '/', headers: {}, tenant: null, scope: undefined, db: {} as Db, principal, ...rest, user };
}

function fixed(verdict: Verdict, later = false): Permission {
  return new Permission({ name: String(verdict), evaluate: () => (later ? Promise.resolve(verdict) : verdict) });
}

describe('the truth table', () => {
  // Kleene's strong three-valued logic, written out: rows a, columns b.
  const and: Record<string, Record<string, Verdict>> = {
    true: { true: true, false: false, unknown: 'unknown' },
    false: { true: false, false: false, unknown: false },
    unknown: { true: 'unknown', false: false, unknown: 'unknown' },
  };
  const or: Record<string, Record<string, Verdict>> = {
    true: { true: true, false: true, unknown: true },
    false: { true: true, false: false, unknown: 'unknown' },
    unknown: { true: true, false: 'unknown', unknown: 'unknown' },
  };
  const inverse: Record<string, Verdict> = { true: false, false: true, unknown: 'unknown' };

  for (const later of [false, true]) {
    for (const a of verdicts) {
      test(`~${a} (${later ? 'later' : 'at once'})`, async () => {
        expect(await not(fixed(a, later)).evaluate(context())).toBe(inverse[String(a)]);
        expect(await fixed(a, later).not().evaluate(context())).toBe(inverse[String(a)]);
      });
      for (const b of verdicts) {
        test(`${a} and ${b}, ${a} or ${b} (${later ? 'later' : 'at once'})`, async () => {
          for (const mixed of [later, false]) {
            expect(await all(fixed(a, later), fixed(b, mixed)).evaluate(context())).toBe(and[String(a)]?.[String(b)]);
            expect(await fixed(a, later).and(fixed(b, mixed)).evaluate(context())).toBe(and[String(a)]?.[String(b)]);
            expect(await any(fixed(a, later), fixed(b, mixed)).evaluate(context())).toBe(or[String(a)]?.[String(b)]);
            expect(await fixed(a, later).or(fixed(b, mixed)).evaluate(context())).toBe(or[String(a)]?.[String(b)]);
          }
        });
      }
    }
  }

  test('three parts fold the same way', async () => {
    expect(await all(fixed(true), fixed('unknown', true), fixed(false)).evaluate(context())).toBe(false);
    expect(await any(fixed(false), fixed('unknown'), fixed(true, true)).evaluate(context())).toBe(true);
  });

  test('evaluation stops at the part that decides', () => {
    const never = hasRule(() => {
      throw new Error('asked');
    });
    expect(all(denyAll, never).evaluate(context())).toBe(false);
    expect(any(allowAny, never).evaluate(context())).toBe(true);
  });
});

describe('a denial', () => {
  const anonymous = context({ user: null });
  const code = async (permission: Permission, given: PermissionContext, object?: unknown) => (await permission.denial(given, object)).code;

  test('is 401 when logging in could help, else 403', async () => {
    expect(await code(isAuthenticated, anonymous)).toBe('not_authenticated');
    expect(await code(isStaff, anonymous)).toBe('not_authenticated');
    expect(await code(isStaff, context())).toBe('permission_denied');
    expect(await code(denyAll, anonymous)).toBe('permission_denied');
    expect(await code(isReadOnly, context({ user: null, method: 'POST' }))).toBe('permission_denied');
    expect(await code(not(isAuthenticated), context())).toBe('permission_denied');
  });

  test('of all() is that of the first part that is false', async () => {
    expect(await code(all(allowAny, isReadOnly, isAuthenticated), context({ user: null, method: 'POST' }))).toBe('permission_denied');
    expect(await code(all(isAuthenticated, denyAll), anonymous)).toBe('not_authenticated');
  });

  test('of any() offers the login that would satisfy a part, else the most telling reason', async () => {
    expect(await code(any(isReadOnly, isAuthenticated), context({ user: null, method: 'POST' }))).toBe('not_authenticated');
    expect(await code(any(isStaff, hasScopes()), context({ scope: 'orders:read' }))).toBe('scope_required');
    expect(await code(any(isStaff, isSuperuser), context())).toBe('permission_denied');
  });
});

describe('built-ins', () => {
  test('read the caller', () => {
    const anonymous = context({ user: null });
    expect([isAuthenticated, isStaff, isSuperuser, isOwner(), hasScopes()].map((each) => each.evaluate(anonymous))).toEqual(
      Array(5).fill(false),
    );
    expect(allowAny.evaluate(anonymous)).toBe(true);
    expect(denyAll.evaluate(context())).toBe(false);
    expect(isStaff.evaluate(context({ user: { ...ann, is_staff: true } }))).toBe(true);
    expect(isSuperuser.evaluate(context({ user: { ...ann, is_superuser: true } }))).toBe(true);
  });

  test('isReadOnly holds for GET, HEAD, OPTIONS and QUERY', () => {
    const allowed = ['GET', 'HEAD', 'OPTIONS', 'QUERY', 'POST', 'PUT', 'PATCH', 'DELETE'].filter(
      (method) => isReadOnly.evaluate(context({ method })) === true,
    );
    expect(allowed).toEqual(['GET', 'HEAD', 'OPTIONS', 'QUERY']);
  });

  test('isOwner is unknown until the object is there', async () => {
    expect(isOwner().evaluate(context())).toBe('unknown');
    expect(isOwner().evaluate(context(), { owner_id: 'ann' })).toBe(true);
    expect(isOwner().evaluate(context(), { owner_id: 'bob' })).toBe(false);
    expect(isOwner().evaluate(context(), {})).toBe(false);
    expect(isOwner('author_id').evaluate(context(), { author_id: 'ann' })).toBe(true);
    expect((await isOwner().denial(context(), { owner_id: 'bob' })).code).toBe('permission_denied');
    expect(await isOwner('owner_id', { hide: true }).denial(context(), { owner_id: 'bob' })).toMatchObject(coreErrors.not_found());
  });

  test('a rule that forgets to answer is a fault, not a "no" that not() would turn around', async () => {
    const forgetful = () => undefined as unknown as Verdict;
    const later = async () => undefined as unknown as Verdict;
    for (const rule of [hasRule(forgetful), hasRule(later)]) {
      for (const permission of [rule, not(rule), any(denyAll, rule), all(allowAny, rule)]) {
        await expect(permission.evaluate(context())).rejects.toMatchObject({
          code: 'invalid_rule',
          message: expect.stringContaining("It must return true, false or 'unknown'"),
        });
      }
    }
  });

  test('hasRule asks a function, or one of the app by name', async () => {
    const even: Permission = hasRule((_, object) => (object === undefined ? 'unknown' : Number(object) % 2 === 0));
    expect(await even.evaluate(context())).toBe('unknown');
    expect(await even.evaluate(context(), 2)).toBe(true);
    const named = hasRule('orders.approve');
    expect(await named.evaluate(context({ rules: { 'orders.approve': ({ user }) => user?.id === 'ann' } }))).toBe(true);
    expect(() => named.evaluate(context())).toThrow('no rule named "orders.approve"');
    expect(rulesOf(all(isAuthenticated, any(named, not(hasRule('other')))))).toEqual(['orders.approve', 'other']);
  });
});

describe('hasScopes', () => {
  const table: readonly [scopes: readonly string[], needed: string, allowed: boolean][] = [
    [['orders:read'], 'orders:read', true],
    [['orders:read'], 'orders:write', false],
    [['orders:read'], 'invoices:read', false],
    [['orders:*'], 'orders:read', true],
    [['orders:*'], 'orders:write', true],
    [['orders:*'], 'invoices:read', false],
    [['*'], 'orders:read', true],
    [['*'], 'orders:write', true],
    [['*'], 'invoices:read', true],
    [[], 'orders:read', false],
  ];
  test.each(table)('a key with %j on an operation that needs %s: %s', (scopes, scope, allowed) => {
    const given = context({ scopes, scope });
    expect(hasScopes().evaluate(given)).toBe(allowed);
  });

  test('a key without the scope is told which one is needed', async () => {
    expect(await hasScopes().denial(context({ scopes: ['orders:read'], scope: 'orders:write' }))).toMatchObject({
      status: 403,
      code: 'insufficient_scope',
      extensions: { required_scope: 'orders:write' },
    });
  });

  test('an operation without a scope accepts any key, but no anonymous caller', () => {
    expect(hasScopes().evaluate(context({ scopes: [] }))).toBe(true);
    expect(hasScopes().evaluate(context())).toBe(true);
    expect(hasScopes().evaluate(context({ user: null }))).toBe(false);
  });

  test('a credential without scopes is refused on a scoped operation unless allowUnscoped', async () => {
    const session = context({ scope: 'orders:read' });
    expect(hasScopes().evaluate(session)).toBe(false);
    expect(await hasScopes().denial(session)).toMatchObject({
      status: 403,
      code: 'scope_required',
      extensions: { required_scope: 'orders:read' },
    });
    expect(hasScopes({ allowUnscoped: true }).evaluate(session)).toBe(true);
    expect(hasScopes({ allowUnscoped: true }).evaluate(context({ scope: 'orders:read', scopes: ['other:read'] }))).toBe(false);
  });

  test('is found in a permission unless negated', () => {
    expect(includesKind(all(isAuthenticated, any(isStaff, hasScopes())), 'has_scopes')).toBe(true);
    expect(includesKind(all(isAuthenticated, not(hasScopes())), 'has_scopes')).toBe(false);
  });
});

test('a name reads like the expression', () => {
  expect(all(isAuthenticated, any(isStaff, not(isOwner()))).name).toBe('isAuthenticated & (isStaff | ~isOwner)');
  expect(not(any(isStaff, isOwner('author_id'))).name).toBe('~(isStaff | isOwner(author_id))');
});

test('combining something that is not a permission says so', () => {
  expect(() => all(hasScopes as unknown as Permission)).toThrow('call the factory');
  expect(() => any()).toThrow('at least one');
});

test('the type knows when no anonymous caller gets through', () => {
  expectTypeOf(isAuthenticated.caller).toEqualTypeOf<User>();
  expectTypeOf(allowAny.caller).toEqualTypeOf<User | null>();
  expectTypeOf(all(allowAny, hasScopes()).caller).toEqualTypeOf<User>();
  expectTypeOf(allowAny.and(isStaff).caller).toEqualTypeOf<User>();
  expectTypeOf(any(allowAny, isStaff).caller).toEqualTypeOf<User | null>();
  expectTypeOf(any(isOwner(), isStaff).caller).toEqualTypeOf<User>();
  expectTypeOf(not(isStaff).caller).toEqualTypeOf<User | null>();
});
