import { Controller, isAuthenticated, route, type App, type AppOptions } from 'kit';
import { admin } from 'kit/admin';
import { accounts } from 'kit/contrib/accounts';
import { insert } from 'kit/db';
import { describeDatabases, fakeClock, testApp } from 'kit/testing';
import { expect, onTestFinished, test } from 'vitest';
import { featureFlags, isFlagOn, type FeatureFlagOptions } from './index.ts';
import { featureFlags as flagModel } from './flags/models.ts';
import { isInRollout } from './flags/rollout.ts';

const ada = { id: '01890000-0000-7000-8000-000000000001' };
const root = { id: '01890000-0000-7000-8000-000000000009', is_staff: true, is_superuser: true };

class CheckoutController extends Controller {
  pay = route.post('/', { permission: isAuthenticated, metadata: { flag: 'new_checkout' } }, () => undefined);
}

const options = (flags: FeatureFlagOptions['flags'] = { new_checkout: 'The new checkout' }) =>
  ({
    modules: [accounts(), admin(), featureFlags({ flags })],
    mount: { '/v1': { '/checkout': CheckoutController } },
  }) satisfies AppOptions;

/** Tests of one file share a database. */
const empty = ({ db }: App) => db.execute('delete from feature_flags');

function setting(name: string, value: string): void {
  process.env[name] = value;
  onTestFinished(() => void delete process.env[name]);
}

describeDatabases('a plugin from its own package', (database) => {
  test('has its own table, route, error and middleware: a route behind a flag opens when the flag is turned on', async () => {
    const clock = fakeClock('2026-03-01T12:00:00Z');
    await using app = await testApp({ ...options(), database: database.db, clock, prepare: empty });
    const client = app.as(ada);
    expect((await client.post('/v1/checkout')).json()).toMatchObject({ status: 404, code: 'feature_not_available' });
    expect((await client.get('/flags')).json()).toEqual({ items: [{ name: 'new_checkout', enabled: false }] });

    await insert(app.app.db, flagModel, { name: 'new_checkout', percentage: 100 });
    clock.advance(1000);
    expect((await client.post('/v1/checkout')).statusCode).toBe(204);
    expect((await client.get('/flags')).json()).toEqual({ items: [{ name: 'new_checkout', enabled: true }] });
    expect((await app.inject('/flags')).statusCode).toBe(401);
  });

  test('reads its table once per refresh, not once per request', async () => {
    const clock = fakeClock('2026-03-01T12:00:00Z');
    await using app = await testApp({ ...options(), database: database.db, clock, prepare: empty });
    await app.as(ada).get('/flags');
    await insert(app.app.db, flagModel, { name: 'new_checkout', percentage: 100 });
    expect((await app.as(ada).post('/v1/checkout')).statusCode).toBe(404);
    clock.advance(1000);
    expect((await app.as(ada).post('/v1/checkout')).statusCode).toBe(204);
  });

  test('is on the admin site, where staff create and change flags', async () => {
    await using app = await testApp({ ...options(), database: database.db, prepare: empty });
    const staff = app.as(root);
    const created = await staff.post('/admin/api/resources/feature-flags', { name: 'new_checkout', percentage: 100 });
    expect(created.statusCode).toBe(201);
    expect(await isFlagOn(app.app.db, 'new_checkout', ada.id)).toBe(true);
  });

  test('warns of rows that no code asks for', async () => {
    await using app = await testApp({
      ...options(),
      database: database.db,
      async prepare(created) {
        await empty(created);
        await insert(created.db, flagModel, { name: 'old_checkout', percentage: 10 });
      },
    });
    const [check] = app.app.modules.find(({ name }) => name === 'feature_flags')?.checks ?? [];
    expect(await check?.run(app.app)).toEqual([
      expect.objectContaining({ id: 'W_FLAGS_1', message: expect.stringContaining('"old_checkout"') as string }),
    ]);
  });
});

test('settings turn a flag on for one process; an unknown flag in them keeps the app from starting', async () => {
  setting('FEATURE_FLAGS_ON', 'new_checkout');
  {
    await using app = await testApp(options());
    expect((await app.as(ada).post('/v1/checkout')).statusCode).toBe(204);
  }
  setting('FEATURE_FLAGS_ON', 'new_chekout');
  await expect(testApp(options())).rejects.toThrow(/E_FLAGS_1 {2}FEATURE_FLAGS_ON names the flag "new_chekout"/);
});

test('options and settings are checked together, and a route with an unknown flag keeps the app from starting', async () => {
  setting('FEATURE_FLAGS_REFRESH_MS', 'soon');
  const unusable = { flags: { 'New Checkout': '' } };
  expect(() => featureFlags(unusable)).toThrow(/New Checkout[\s\S]*FEATURE_FLAGS_REFRESH_MS/);
  delete process.env['FEATURE_FLAGS_REFRESH_MS'];
  await expect(testApp(options({ other: 'Another feature' }))).rejects.toThrow(
    /CheckoutController\.pay: the module "feature_flags" refuses it: metadata\.flag is "new_checkout", and featureFlags\(\) declares other\./,
  );
});

test('a rollout is stable and only grows', () => {
  const users = Array.from({ length: 1000 }, (_, index) => `user-${index}`);
  const having = (percentage: number) => users.filter((user) => isInRollout('new_checkout', percentage, user));
  expect(having(0)).toEqual([]);
  expect(having(100)).toEqual(users);
  const [quarter, half] = [having(25), new Set(having(50))];
  expect(quarter.filter((user) => !half.has(user))).toEqual([]);
  expect(quarter.length).toBeGreaterThan(150);
  expect(quarter.length).toBeLessThan(350);
});
