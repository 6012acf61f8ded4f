import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { AdminApp } from '../../../test/admin/admin-app.ts';
import type { AdminTile } from '../../app/admin/sections.ts';
import type { Module } from '../../app/index.ts';
import { metrics } from '../../contrib/metrics/index.ts';
import { createEndpoint, webhooks } from '../../contrib/webhooks/index.ts';
import { allowAny } from '../../permissions/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { AdminSite } from '../state/admin-site.ts';
import { readAdminOptions } from '../options.ts';
import { AlertWatch } from './alert-watch.ts';
import { checkAlerts } from './check-alerts.ts';

const EVERY_MS = 60_000;
/** What the module shows on the overview. The disk of this machine and its speed are not part of the test. */
let tiles: AdminTile[] = [];
const overview = () => Promise.resolve({ title: 'Ovens', tiles, charts: [], tables: [] });
const ovens: Module = { name: 'ovens', admin: { overview } };
const hot = (tone: AdminTile['tone'], value = 300): AdminTile => ({ label: 'Heat', value, tone, hint: 'Open the `door`.' });

describeDatabases('alerts', (database) => {
  let app: AdminApp;
  let sites: AdminSite[];
  let owner: string;
  let other: string;
  beforeAll(async () => {
    app = await new AdminApp(
      database.db,
      [webhooks(), metrics({ path: '/metrics', permission: allowAny, process: false }), ovens],
      {},
      { alerts: {} },
    ).ready();
    owner = (await app.newUser()).id;
    other = (await app.newUser()).id;
    await database.db.transaction(async (tx) => {
      for (const each of [owner, other]) await createEndpoint(tx, { owner: each, url: `https://example.com/${each}`, events: ['*'] });
    });
    // As many as there are processes.
    sites = [1, 2, 3].map(() => {
      const site = new AdminSite(readAdminOptions({ alerts: { everyMs: EVERY_MS, audience: { owner } } }));
      site.installIn(app.app);
      return site;
    });
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    tiles = [];
    app.clock.advance(EVERY_MS);
    for (const table of ['webhook_events', 'admin_alerts']) await database.db.execute(`delete from ${table}`);
    app.logged.length = 0;
  });

  const settings = () => sites[0]?.settings.alerts as NonNullable<AdminSite['settings']['alerts']>;
  /** Every process at the same time. Which of them checks is not known. */
  const checkAll = async (): Promise<number> => {
    const checked = await Promise.all(sites.map((site) => checkAlerts(site, settings())));
    app.clock.advance(EVERY_MS);
    return checked.filter((changes) => changes !== null).length;
  };
  const ofOvens = <T extends { readonly alert?: string }>(all: readonly T[]): T[] => all.filter(({ alert }) => alert === 'Ovens: Heat');
  const events = async () => {
    const stored = await database.db.query<{ type: string; data: string }>('select type, data from webhook_events order by id');
    const read = ({ type, data }: { type: string; data: string }) =>
      Object.assign(JSON.parse(data) as { alert: string; severity: string; value: string }, { type });
    return ofOvens(stored.map(read));
  };
  const logged = () => ofOvens(app.logged.map((line) => JSON.parse(line) as { alert?: string; msg: string }));

  test('one process of all sends an alert, once while it goes on, and once when it is over', async () => {
    tiles = [hot('warning')];
    expect(await checkAll()).toBe(1);
    tiles = [hot('warning', 310)];
    expect(await checkAll()).toBe(1);
    const since = expect.any(String);
    const fired = { type: 'alert.fired', severity: 'warning', value: '300', hint: 'Open the door.', since };
    expect(await events()).toEqual([{ ...fired, alert: 'Ovens: Heat' }]);
    tiles = [];
    expect(await checkAll()).toBe(1);
    expect(await checkAll()).toBe(1);
    expect((await events()).map(({ type }) => type)).toEqual(['alert.fired', 'alert.resolved']);
    expect(logged().map(({ msg }) => msg)).toEqual(['admin: an alert fired', 'admin: an alert is over']);
  });

  test('an alert that becomes worse is sent again, one that becomes less severe is not', async () => {
    for (const tone of ['warning', 'bad', 'warning', 'bad'] as const) {
      tiles = [hot(tone)];
      await checkAll();
    }
    expect((await events()).map(({ severity }) => severity)).toEqual(['warning', 'bad', 'bad']);
  });

  test('within the interval nothing is checked, and a check that was overtaken changes nothing', async () => {
    tiles = [hot('bad')];
    const [first, second] = sites as [AdminSite, AdminSite];
    expect(await checkAlerts(first, settings())).not.toBeNull();
    expect(await checkAlerts(second, settings())).toBeNull();
    app.clock.advance(EVERY_MS);
    const slow = Promise.withResolvers<void>();
    // The first counts, and before it has finished the next interval has begun and the second has checked.
    tiles = [];
    const overtaken = { overview: () => slow.promise.then(overview) };
    Object.defineProperty(first, 'declarations', { value: [overtaken] });
    const late = checkAlerts(first, settings());
    await expect
      .poll(
        async () =>
          (await database.db.query<{ n: number }>('select count(*) as n from admin_alert_checks where began_at = $1', [app.clock.now()]))[0]
            ?.n,
      )
      .toEqual(expect.toSatisfy((n) => Number(n) === 1));
    app.clock.advance(EVERY_MS);
    tiles = [hot('bad')];
    expect(await checkAlerts(second, settings())).toMatchObject({ resolved: [] });
    tiles = [];
    slow.resolve();
    expect(await late).toBeNull();
    expect((await events()).map(({ type }) => type)).toEqual(['alert.fired']);
  });

  test('events go to the audience alone, and none is published without one', async () => {
    tiles = [hot('bad')];
    await checkAll();
    const reached = await database.db.query<{ owner_id: string }>(
      `select distinct p.owner_id from webhook_deliveries d join webhook_endpoints p on p.id = d.endpoint_id where d.event_type = 'alert.fired'`,
    );
    expect(reached).toEqual([{ owner_id: owner }]);
    await database.db.execute('delete from webhook_events');
    await database.db.execute('delete from admin_alerts');
    const [site] = sites as [AdminSite];
    await checkAlerts(sites[1] ?? site, { everyMs: EVERY_MS });
    expect(await events()).toEqual([]);
    expect(logged().map(({ msg }) => msg)).toEqual(['admin: an alert fired', 'admin: an alert fired']);
  });

  test('metrics show the alerts that fire, in every process', async () => {
    tiles = [hot('bad')];
    await checkAll();
    const line = 'kit_admin_alerts{alert="Ovens: Heat",severity="bad"} 1';
    expect((await app.call('GET', '/metrics')).text).toContain(line);
    tiles = [];
    await checkAll();
    expect((await app.call('GET', '/metrics')).text).not.toContain(line);
  });

  test('a process that serves checks by itself, and one that cannot says so and goes on', async () => {
    tiles = [hot('bad')];
    const watch = new AlertWatch(sites[2] as AdminSite);
    watch.start();
    await expect.poll(() => logged().map(({ msg }) => msg)).toEqual(['admin: an alert fired']);
    await watch.stop();
    await database.db.execute('alter table admin_alert_checks rename to elsewhere');
    try {
      const failing = new AlertWatch(sites[1] as AdminSite);
      failing.start();
      await failing.stop();
    } finally {
      await database.db.execute('alter table elsewhere rename to admin_alert_checks');
    }
    expect(app.logged.some((line) => line.includes('could not check the alerts'))).toBe(true);
  });

  test.each([
    [{ everyMs: 5 }],
    [{ audience: { owner: '' } }],
    [{ audience: { owner: 'a', tenantKey: 'b' } }],
    [{ audience: { broadcast: true } }],
  ])('admin({ alerts: %j }) is refused at the start', (alerts) => {
    expect(() => readAdminOptions({ alerts: alerts as never })).toThrow(/alerts/);
  });
});
