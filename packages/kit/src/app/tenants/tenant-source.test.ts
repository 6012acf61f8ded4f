import { expect, test } from 'vitest';
import { Controller } from '../../http/compile/controller.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import { route } from '../../http/declare/route.ts';
import { allowAny } from '../../permissions/built-ins.ts';
import { createApp } from '../assemble/create-app.ts';
import type { Module } from '../declare/module.ts';
import type { AppOptions } from '../declare/options.ts';

class TenantController extends Controller {
  tenant = route.get('/', { permission: allowAny, response: jsonSchema<object>({}) }, async ({ caller }) => ({
    tenant: (await caller()).tenant,
  }));
}

const north: Module = { name: 'north', tenants: { tenant: () => 'north' } };

function app(options: Partial<AppOptions>) {
  return createApp({
    database: 'sqlite::memory:',
    mount: { '/v1': { '/tenant': TenantController } },
    log: { level: 'silent' },
    ...options,
  });
}

async function tenantIn(options: Partial<AppOptions>): Promise<unknown> {
  const made = app(options);
  const response = await made.inject('/v1/tenant');
  await made.close();
  return response.json().tenant;
}

test('a module provides the tenants of the app, unless the app has its own', async () => {
  expect(await tenantIn({})).toBeNull();
  expect(await tenantIn({ modules: [north] })).toBe('north');
  expect(await tenantIn({ modules: [north], tenant: () => 'own' })).toBe('own');
  expect(app({ modules: [north] }).hasTenants).toBe(true);
  expect(app({}).hasTenants).toBe(false);
});

test('two modules with tenants do not fit together, unless the app chooses', () => {
  const modules = [north, { ...north, name: 'south' }];
  expect(() => app({ modules })).toThrow(/E006 {2}north and south both provide tenants/);
  expect(() => app({ modules, tenant: () => null })).not.toThrow();
  expect(() => app({ modules: [{ name: 'odd', tenants: {} }] })).toThrow(/tenants\.tenant/);
});
