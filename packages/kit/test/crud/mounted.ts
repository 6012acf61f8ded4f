import type { User } from '../../src/auth/people/principal.ts';
import { MountedResource } from '../../src/crud/mount/mounted-resource.ts';
import type { AnyResource } from '../../src/crud/declare/resource.ts';
import type { CrudRequest } from '../../src/crud/policy/crud-request.ts';
import type { Db } from '../../src/db/engine/db.ts';
import { allowAny } from '../../src/permissions/index.ts';

/** A resource with the options of a controller, compiled as in an app that has tenants and these resources beside it. */
export function mounted(declared: AnyResource, options: object = {}, beside: readonly AnyResource[] = []): MountedResource {
  const found = new MountedResource(declared, { permission: allowAny, ...options });
  found.prepare({ controllers: [], resources: [declared, ...beside], modules: [], hasTenants: true, users: null });
  return found;
}

export const ann: User = {
  id: '00000000-0000-7000-8000-0000000000a1',
  username: 'ann',
  email: null,
  is_active: true,
  is_staff: false,
  is_superuser: false,
};
export const sue: User = { ...ann, id: '00000000-0000-7000-8000-0000000000d4', username: 'sue', is_staff: true };

export const NOW = new Date('2026-01-02T03:04:05.000Z');

/** A request of a program. Without a database it can be asked about rules and names, and no statement runs. */
export function requestBy(user: User | null, more: Partial<CrudRequest> = {}): CrudRequest {
  const { tenant = 'north', audience = null, action = 'list' } = more;
  const principal = user === null ? null : { user, scheme: 'test', scopes: null };
  const databases = { default: { dialect: 'sqlite' } as Db };
  const context = {
    method: 'GET',
    url: '',
    headers: {},
    principal,
    user,
    tenant,
    scope: undefined,
    audience,
    db: databases.default,
    rules: new Map(),
  };
  return {
    context: context as never,
    user,
    principal,
    tenant,
    action,
    clock: { now: () => NOW },
    services: undefined as never,
    requestId: null,
    databases,
    audience,
    controller: null,
    verdicts: new Map(),
    scopes: new Map(),
    ...more,
  };
}
