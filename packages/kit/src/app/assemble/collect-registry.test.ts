import { expect, test } from 'vitest';
import { createApp } from './create-app.ts';
import type { Module } from '../declare/module.ts';
import { type ProvidedRegistry } from '../declare/registry.ts';

const make = (modules: Module[]) => createApp({ database: 'sqlite::memory:', log: { level: 'silent' }, mount: {}, modules });
const providing = (name: string, provided: ProvidedRegistry): Module => ({ name, provides: () => provided });
const audit = { record: async () => undefined };
const heard = async () => undefined;

test('an app without providers has an empty registry, which nothing can fill later', () => {
  const { registry } = make([]);
  expect(registry).toEqual({
    audit: null,
    events: null,
    jobs: null,
    metrics: null,
    groups: null,
    login: null,
    identities: null,
    sessionTenants: null,
    registration: null,
    quotas: null,
    usersWithoutLogin: null,
    serviceUsers: null,
    viewing: null,
    accountRoutes: null,
    tenantRoutes: null,
    groupChanges: [],
    userChanges: [],
    memberChanges: [],
    standings: { of: expect.any(Function), membershipSource: expect.any(Function) },
    tenants: { exist: false, directory: null },
  });
  expect(() => Object.assign(registry, { audit })).toThrow(TypeError);
});

test('what modules provide is there before any module is installed; all may listen to user changes', () => {
  const seen: unknown[] = [];
  const early: Module = { name: 'early', install: ({ registry }) => void seen.push(registry.audit) };
  const { registry } = make([early, providing('a', { audit, userChanges: [heard] }), providing('b', { userChanges: [heard] })]);
  expect(seen).toEqual([audit]);
  expect(registry).toMatchObject({ audit, userChanges: [heard, heard] });
});

test('two providers of one thing, or of something unknown, fail the start and are named', () => {
  expect(() => make([providing('a', { audit }), providing('b', { audit })])).toThrow('The modules "a" and "b" both provide audit.');
  expect(() => make([providing('a', { event: 1 } as never)])).toThrow(
    'The module "a" provides "event", which is unknown. Known: audit, events, jobs, metrics, groups, identities, sessionTenants, registration, usersWithoutLogin, serviceUsers, viewing, quotas, accountRoutes, tenantRoutes, groupChanges, userChanges, memberChanges.',
  );
});
