import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import type { Authenticator } from '../../src/auth/request/authenticator.ts';
import { accounts, createUser } from '../../src/contrib/accounts/index.ts';
import { ApiKeyController, apiKeys, createApiKey, revokeApiKey } from '../../src/contrib/apikeys/index.ts';
import { audit, AuditController } from '../../src/contrib/audit/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { testApp, type TestApp } from '../../src/testing/test-app.ts';
import { Follower } from './live.ts';

const PATIENCE = { timeout: 20_000, interval: 20 };
const KEY_LIFE_MS = 1_500;

/** Credentials of another program, which does not ask whether the user is active. */
const byHeader: Authenticator = {
  name: 'header',
  securityScheme: { type: 'apiKey', in: 'header', name: 'x-user' },
  async authenticate({ headers: { 'x-user': id } }) {
    if (typeof id !== 'string') return null;
    const isStaff = id === staffId;
    return {
      user: { id, username: id, email: null, is_active: true, is_staff: isStaff, is_superuser: false },
      scheme: 'header',
      scopes: null,
    };
  },
};
let staffId = '';

class LiveKeys extends ApiKeyController {
  static override readonly live = true;
}
class LiveAudit extends AuditController {
  static override readonly live = true;
}

describeDatabases('live lists that depend on other tables', (database) => {
  let kit: TestApp;
  let url: string;
  const ids = { ann: '', bob: '' };
  const open: Follower[] = [];

  beforeAll(async () => {
    kit = await testApp({
      database: database.db,
      modules: [accounts({ passwordCost: { logN: 4, r: 8, p: 1 } }), apiKeys(), audit()],
      authenticators: [byHeader],
      mount: { '/v1': { '/api-keys': LiveKeys, '/audit': LiveAudit } },
    });
    url = `${await kit.listen()}/v1`;
    const make = async (username: string) => (await createUser(kit.app.db, { username, password: null })).id;
    [ids.ann, ids.bob, staffId] = [await make('ann'), await make('bob'), await make('sam')];
  });
  afterAll(() => kit?.close());
  afterEach(async () => {
    for (const each of open.splice(0)) await each.disconnect();
  });

  async function follow(id: string, path: string, query = ''): Promise<Follower> {
    const follower = await new Follower('ann', query, { 'x-user': id }).connect(`${url}${path}`);
    open.push(follower);
    await vi.waitFor(() => expect([follower.batches, follower.ended]).toEqual([1, undefined]), PATIENCE);
    return follower;
  }
  const listed = async (id: string, path: string): Promise<unknown[]> => {
    const response = await fetch(`${url}${path}`, { headers: { 'x-user': id } });
    return ((await response.json()) as { items: unknown[] }).items;
  };
  const isListed = (follower: Follower, id: string, path: string) =>
    vi.waitFor(async () => {
      const byId = (items: Iterable<unknown>) => [...items].map((each) => JSON.stringify(each)).toSorted();
      expect(byId(follower.rows.values())).toEqual(byId(await listed(id, path)));
    }, PATIENCE);
  const statesOf = ({ rows }: Follower) => [...rows.values()].map(({ state }) => state as string);
  const eventsOf = ({ log }: Follower) => log.map(({ event }) => event).filter((event) => event !== 'ready');

  test('keys: made, expired by time alone, revoked, and inactive with their owner, who is in another table; those of others never come', async () => {
    const [all, active, inactive, other] = [
      await follow(ids.ann, '/api-keys'),
      await follow(ids.ann, '/api-keys', '?state=active'),
      await follow(ids.ann, '/api-keys', '?state=owner_inactive'),
      await follow(ids.bob, '/api-keys'),
    ];
    const key = (expiresAt: Date | null) => createApiKey(kit.app.db, { user: ids.ann, name: 'live', scopes: [], expiresAt });
    const [short, long] = [await key(new Date(Date.now() + KEY_LIFE_MS)), await key(null)];
    await vi.waitFor(() => expect(statesOf(all)).toEqual(['active', 'active']), PATIENCE);
    await vi.waitFor(() => expect(all.rows.get(short.apiKey.id)?.state).toBe('expired'), PATIENCE);
    await isListed(active, ids.ann, '/api-keys?state=active');
    await revokeApiKey(kit.app.db, short.apiKey.id);
    await vi.waitFor(() => expect(all.rows.get(short.apiKey.id)?.state).toBe('revoked'), PATIENCE);
    expect(eventsOf(active)).toEqual(['upsert', 'upsert', 'remove']);
    const isActive = (value: boolean) => database.db.query('update users set is_active = $1 where id = $2', [value, ids.ann]);
    await isActive(false);
    await vi.waitFor(() => expect(all.rows.get(long.apiKey.id)?.state).toBe('owner_inactive'), PATIENCE);
    await vi.waitFor(() => expect([active.rows.size, inactive.rows.size]).toEqual([0, 1]), PATIENCE);
    await isListed(all, ids.ann, '/api-keys');
    await isActive(true);
    await vi.waitFor(() => expect([active.rows.size, inactive.rows.size]).toEqual([1, 0]), PATIENCE);
    expect(eventsOf(other)).toEqual([]);
  });

  test('an owner who gets another name makes no event of a key', async () => {
    const all = await follow(ids.bob, '/api-keys');
    await database.db.query('update users set username = $1 where id = $2', ['bobby', ids.bob]);
    await createApiKey(kit.app.db, { user: ids.bob, name: 'last', scopes: [] });
    await vi.waitFor(() => expect(all.rows.size).toBe(1), PATIENCE);
    expect(eventsOf(all)).toEqual(['upsert']);
  });

  test('audit entries appear when they are sealed, without the values that depend on the record', async () => {
    const entries = await follow(staffId, '/audit', '?action=live.checked');
    const record = (target_id: string) =>
      kit.app.registry.audit?.record(kit.app.db, [
        { action: 'live.checked', target_type: 'lamp', target_id, actor: 'a program', before: { lit: false }, after: { lit: true } },
      ]);
    await record('1');
    await vi.waitFor(() => expect([...entries.rows.values()]).toMatchObject([{ target_id: '1', actor_name: 'a program' }]), PATIENCE);
    const [item] = [...entries.rows.values()] as [object];
    const [listedItem] = (await listed(staffId, '/audit?action=live.checked')) as [Record<string, unknown>];
    const { before, after, metadata: _, values_hidden: __, ...rest } = listedItem;
    expect([item, before, after]).toEqual([rest, { lit: false }, { lit: true }]);
    const refused = await new Follower('ann', '?fields=id,before', { 'x-user': staffId }).connect(`${url}/audit`);
    expect(refused.ended?.data).toMatchObject({ status: 422, code: 'not_live' });
    const forbidden = await new Follower('ann', '', { 'x-user': ids.ann }).connect(`${url}/audit`);
    expect(forbidden.status).toBe(403);
    await record('2');
    await vi.waitFor(() => expect(entries.rows.size).toBe(2), PATIENCE);
    expect(eventsOf(entries)).toEqual(['upsert', 'upsert']);
  });

  test('an erasure changes followed entries, and leaves nothing of their values in the change log', async () => {
    const entries = await follow(staffId, '/audit', '?target_id=erased');
    const about = { target_type: 'lamp', target_id: 'erased' };
    await kit.app.registry.audit?.record(kit.app.db, [{ action: 'live.erased', ...about, actor: 'somebody named', after: { name: 'x' } }]);
    await vi.waitFor(() => expect(entries.rows.size).toBe(1), PATIENCE);
    await kit.app.registry.audit?.erase?.(kit.app.db, { ...about, records: { type: 'lamp', ids: ['erased'] } });
    const erased = { action: 'live.erased', values_erased: true, actor_name: null };
    await vi.waitFor(() => expect([...entries.rows.values()]).toContainEqual(expect.objectContaining(erased)), PATIENCE);
    const logged = await database.db.query<{ prior: unknown }>(`select prior from kit_changes where resource = 'audit_entries'`);
    expect(JSON.stringify(logged)).not.toContain('somebody named');
  });
});
