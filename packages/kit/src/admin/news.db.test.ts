import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { AdminApp, type Browser } from '../../test/admin/admin-app.ts';
import { users } from '../contrib/accounts/index.ts';
import { ApiKeyController, apiKeys, createApiKey } from '../contrib/apikeys/index.ts';
import { AuditController } from '../contrib/audit/index.ts';
import type { Module } from '../app/index.ts';
import { CrudController, resource } from '../crud/index.ts';
import { createTable, insert, migration, model, t, versioned } from '../db/index.ts';
import { isAuthenticated } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { modelResource } from '../screens/screen.ts';

const columns = { id: t.uuidv7().pk(), title: t.text(80), internal: t.bool().dbDefault(false), ...versioned() };
const tickets = model('tickets', { ...columns, owner_id: t.ref(() => users).readOnly() });
const memos = model('memos', { id: t.uuidv7().pk(), name: t.text(20) });
const ticketResource = resource(tickets, { owner: 'owner_id', version: 'version', admin: { rows: { internal: false } } });
class TicketController extends CrudController(ticketResource, { permission: isAuthenticated, live: true }) {}
class LiveKeys extends ApiKeyController {
  static override readonly live = true;
}
class LiveAudit extends AuditController {
  static override readonly live = true;
}
const desk: Module = {
  name: 'desk',
  requires: ['accounts', 'apikeys', 'audit'],
  models: [tickets, memos],
  migrations: [
    migration('0001_initial', [
      createTable('tickets', { ...columns, owner_id: t.ref('users') }),
      createTable('memos', { id: t.uuidv7().pk(), name: t.text(20) }),
    ]),
  ],
  mount: { '/v1/tickets': new TicketController(), '/v1/api-keys': new LiveKeys(), '/v1/audit': new LiveAudit() },
  admin: { resources: [modelResource(ticketResource), modelResource(memos)] },
};

const PATIENCE = { timeout: 15_000, interval: 20 };

describeDatabases('news of a list of the admin site', (database) => {
  let site: AdminApp;
  let staff: Browser;
  let url: string;
  const stops: AbortController[] = [];

  beforeAll(async () => {
    site = await new AdminApp(database.db, [apiKeys(), desk]).ready();
    staff = await site.browser();
    await site.app.listen({ port: 0 });
    url = `http://127.0.0.1:${(site.app.fastify.server.address() as AddressInfo).port}/admin/api/lists`;
  });
  afterAll(async () => {
    for (const stop of stops) stop.abort();
    await site.close();
  });

  /** What a browser gets. */
  async function follow(path: string, { cookie } = staff) {
    const stop = new AbortController();
    stops.push(stop);
    const response = await fetch(`${url}/${path}`, { headers: { cookie, accept: 'text/event-stream' }, signal: stop.signal });
    const received = { status: response.status, text: '', isOver: false };
    const read = async (): Promise<void> => {
      for await (const chunk of response.body as AsyncIterable<Uint8Array>) received.text += Buffer.from(chunk).toString();
    };
    void read()
      .catch(() => undefined)
      .finally(() => (received.isOver = true));
    return { received, count: () => received.text.split('event: changed').length - 1 };
  }
  const rename = (id: string, title: string) => site.send(staff, 'PATCH', `resources/tickets/${id}`, { title });

  test('a list is followed where its resource is live, and the shape says so', async () => {
    const { body } = await site.get(staff, 'session');
    const shapes = new Map((body.site.resources as { name: string; follows?: boolean }[]).map((each) => [each.name, each.follows]));
    expect([shapes.get('tickets'), shapes.get('memos')]).toEqual([true, undefined]);
    const { received } = await follow('memos/news');
    await vi.waitFor(() => expect(received.isOver).toBe(true), PATIENCE);
    expect(received.text).toContain('not_live');
  });

  test('says once that it follows, then that rows which staff see changed; of others nothing', async () => {
    const [shown, hidden] = await Promise.all([
      insert(database.db, tickets, { title: 'shown', owner_id: staff.userId }),
      insert(database.db, tickets, { title: 'hidden', internal: true, owner_id: staff.userId }),
    ]);
    const list = await follow('tickets/news');
    const one = await follow(`tickets/news?id=${shown.id}`);
    await vi.waitFor(() => expect([list.count(), one.count()]).toEqual([1, 1]), PATIENCE);
    const response = await fetch(`${url.replace('/admin/api/lists', '/v1/tickets')}/${hidden.id}`, {
      method: 'PATCH',
      headers: { cookie: staff.cookie, 'x-csrf-token': staff.csrf, 'content-type': 'application/json' },
      body: JSON.stringify({ title: 'still hidden' }),
    });
    expect(response.status).toBe(200);
    expect((await rename(shown.id, 'another')).status).toBe(200);
    await vi.waitFor(() => expect([list.count(), one.count()]).toEqual([2, 2]), PATIENCE);
    const other = await insert(database.db, tickets, { title: 'other', owner_id: staff.userId });
    expect((await rename(other.id, 'renamed')).status).toBe(200);
    await vi.waitFor(() => expect(list.count()).toBe(3), PATIENCE);
    expect(one.count()).toBe(2);
    expect(list.received.text).not.toContain(hidden.id);
    expect(list.received.text).not.toContain('renamed');
  });

  test('keys and audit entries are followed where their controllers are live', async () => {
    const { body } = await site.get(staff, 'session');
    const shapes = new Map((body.site.resources as { name: string; follows?: boolean }[]).map((each) => [each.name, each.follows]));
    expect([shapes.get('api-keys'), shapes.get('audit-log')]).toEqual([true, true]);
    const [keys, entries] = [await follow('api-keys/news'), await follow('audit-log/news')];
    await vi.waitFor(() => expect([keys.count(), entries.count()]).toEqual([1, 1]), PATIENCE);
    await createApiKey(site.app.db, { user: staff.userId, name: 'followed', scopes: [] });
    await vi.waitFor(() => expect([keys.count(), entries.count()]).toEqual([2, 2]), PATIENCE);
  });

  test('ends when its reader is no member of staff any more', async () => {
    const former = await site.browser();
    const { received, count } = await follow('tickets/news', former);
    await vi.waitFor(() => expect(count()).toBe(1), PATIENCE);
    await database.db.query('update users set is_staff = $1 where id = $2', [false, former.userId]);
    const since = Date.now();
    await vi.waitFor(() => expect(received.isOver).toBe(true), PATIENCE);
    expect(received.text).toContain('event: error');
    expect(Date.now() - since).toBeLessThan(10_000);
  });
});
