import { Client, InMemoryTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { CrudController, resource } from '../../crud/index.ts';
import { createTable, migration, model, t, versioned } from '../../db/index.ts';
import type { User } from '../../auth/people/principal.ts';
import { hasScopes } from '../../permissions/built-ins.ts';
import { INPUT_LIMITS } from '../../options/input-limits.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { testApp, type TestApp } from '../../testing/test-app.ts';
import { accounts } from '../accounts/module.ts';
import { accountsOf } from '../accounts/users/accounts.ts';
import { createUser } from '../accounts/users/manage-users.ts';
import { apiKeys } from '../apikeys/module.ts';
import { grant, grants, objectActions, objectGrants, revoke } from '../grants/index.ts';
import { createApiKey } from '../apikeys/manage/create.ts';
import { revokeApiKey } from '../apikeys/manage/revoke.ts';
import { mcp } from './module.ts';
import { mcpServer } from './serve/protocol.ts';
import { callerOverStdio, followingOverStdio } from './serve/stdio.ts';
import { ConnectionSubscriptions, SubscribingTransport } from './serve/stdio-subscriptions.ts';
import { CallerTools } from './tools/caller-tools.ts';
import { toolRoutes } from './tools/tool-table.ts';
import { readMcpOptions } from './options.ts';

const notes = model('notes', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), title: t.text(200), ...versioned() });
const noteResource = resource(notes, { owner: 'owner_id', version: 'version' });
const tool = { tool: true } as const;
const operations = { list: tool, retrieve: tool, create: tool, partialUpdate: tool } as const;
const facts = { permission: hasScopes({ allowUnscoped: true }), scope: 'notes', operations };
class NoteController extends CrudController(noteResource, { ...facts, live: true }) {}
class StillController extends CrudController(noteResource, facts) {}

const plans = model('plans', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), title: t.text(200), ...versioned() });
const planActions = objectActions(plans, { actions: ['view', 'change', 'delete'] });
const planResource = resource(plans, { owner: 'owner_id', access: grants(plans), version: 'version' });
class PlanController extends CrudController(planResource, { ...facts, live: true }) {}

type Followed = readonly [client: Client, heard: string[]];

describeDatabases('subscriptions of mcp()', (database) => {
  let kit: TestApp;
  let address: string;
  const clients: Client[] = [];
  const people: Record<string, { readonly user: User; readonly key: string; readonly note: string }> = {};

  beforeAll(async () => {
    const own = {
      name: 'notes',
      models: [notes, plans],
      migrations: [migration('0001_notes', [createTable('notes', notes.columns), createTable('plans', plans.columns)])],
    };
    kit = await testApp({
      database: database.db,
      modules: [accounts(), apiKeys(), objectGrants({ objects: [planActions] }), own, mcp()],
      mount: { '/v1': { '/notes': NoteController, '/still': StillController, '/plans': PlanController } },
    });
    address = await kit.listen();
    for (const username of ['ada', 'bob']) {
      const user = await createUser(kit.app.db, { username }, accountsOf(kit.app.db).management(null));
      const { raw } = await createApiKey(kit.app.db, { user, name: 'agent', scopes: ['notes:*'] });
      const made = await kit.inject({ method: 'POST', url: '/v1/notes', headers: { 'x-api-key': raw }, payload: { title: 'first' } });
      people[username] = { user, key: raw, note: made.json<{ id: string }>().id };
    }
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) await client.close();
  });
  afterAll(() => kit.close());

  const person = (name: string) => people[name]!;
  const change = async (name: string, title: string, id = person(name).note): Promise<void> => {
    const headers = { 'x-api-key': person(name).key };
    const { statusCode } = await kit.inject({ method: 'PATCH', url: `/v1/notes/${id}`, headers, payload: { title } });
    expect(statusCode).toBe(200);
  };
  const connected = async (client: Client, transport: Parameters<Client['connect']>[0]): Promise<Followed> => {
    const heard: string[] = [];
    client.setNotificationHandler('notifications/resources/updated', ({ params: { uri } }) => void heard.push(uri));
    await client.connect(transport);
    clients.push(client);
    return [client, heard];
  };
  type Mode = 'auto' | 'legacy';
  const madeClient = (mode: Mode): Client => new Client({ name: 'agent', version: '1' }, { versionNegotiation: { mode } });
  const overHttp = (name: string, mode: Mode = 'auto'): Promise<Followed> => {
    const requestInit = { headers: { authorization: `Bearer ${person(name).key}` } };
    return connected(madeClient(mode), new StreamableHTTPClientTransport(new URL('/mcp', address), { requestInit }));
  };
  /** As `kit mcp` serves standard input and output. */
  const overStdio = (name: string, mode: Mode): Promise<Followed> => {
    const settings = readMcpOptions({});
    const tools = new CallerTools(toolRoutes(kit.app.routes, settings));
    const endpoint = kit.app.routes.find(({ controller }) => controller === 'KitMcpController')!;
    const withCaller = callerOverStdio(endpoint, person(name).key);
    const follow = followingOverStdio(tools, withCaller);
    const subscriptions = new ConnectionSubscriptions(follow);
    const [near, far] = InMemoryTransport.createLinkedPair();
    serveStdio(({ era }) => mcpServer({ app: kit.app, settings, tools }, withCaller, era === 'legacy' ? subscriptions : 'listened'), {
      transport: new SubscribingTransport(far, follow),
    });
    return connected(madeClient(mode), near);
  };
  const connects: Record<string, (name: string) => Promise<Followed>> = {
    HTTP: overHttp,
    stdio: (name) => overStdio(name, 'auto'),
  };
  const LIST = 'kit://v1/notes';
  const one = (name: string): string => `${LIST}/${person(name).note}`;

  for (const [way, connect] of Object.entries(connects)) {
    test(`${way}: the caller is notified of changes of its own list and record, and of nothing else`, { timeout: 120_000 }, async () => {
      const [client, heard] = await connect('ada');
      expect(client.getServerCapabilities()?.resources).toEqual({ subscribe: true });
      const asked = [LIST, one('ada'), one('bob'), 'kit://v1/still', 'kit://v1/nothing', 'kit://v1/notes/../notes', 'https://example.org'];
      const subscription = await client.listen({ resourceSubscriptions: asked, toolsListChanged: true });
      // The record of another one is as one that does not exist: it may be created.
      expect(subscription.honoredFilter).toEqual({ resourceSubscriptions: [LIST, one('ada'), one('bob')] });
      await change('bob', `bob ${way}`);
      await change('ada', `ada ${way}`);
      await expect.poll(() => new Set(heard), { timeout: 60_000 }).toEqual(new Set([LIST, one('ada')]));
      const { contents } = await client.readResource({ uri: one('ada') });
      expect(JSON.stringify(contents)).toContain(`ada ${way}`);
      heard.length = 0;
      await subscription.close();
      expect(await subscription.closed).toBe('local');
      const [again, news] = await connect('ada');
      await again.listen({ resourceSubscriptions: [LIST] });
      await change('ada', `later ${way}`);
      await expect.poll(() => news, { timeout: 60_000 }).toContain(LIST);
      expect(heard).toEqual([]);
    });

    test(`${way}: ends when the key is revoked, and the client is told`, { timeout: 120_000 }, async () => {
      const { user } = person('ada');
      const { raw, apiKey } = await createApiKey(kit.app.db, { user, name: 'short', scopes: ['notes:*'] });
      people[`short ${way}`] = { ...person('ada'), key: raw };
      const [client, heard] = await connect(`short ${way}`);
      const subscription = await client.listen({ resourceSubscriptions: [LIST, one('ada')] });
      await revokeApiKey(kit.app.db, { id: apiKey.id });
      expect(await subscription.closed).toBe('graceful');
      await change('ada', `after ${way}`);
      expect(heard).toEqual([]);
    });
  }

  test('a record that was shared is not told of any more once the grant is revoked', { timeout: 240_000 }, async () => {
    const make = async (name: string): Promise<string> => {
      const headers = { 'x-api-key': person(name).key };
      return (await kit.inject({ method: 'POST', url: '/v1/plans', headers, payload: { title: 'first' } })).json<{ id: string }>().id;
    };
    const edit = async (name: string, id: string, title: string): Promise<void> => {
      const headers = { 'x-api-key': person(name).key };
      expect((await kit.inject({ method: 'PATCH', url: `/v1/plans/${id}`, headers, payload: { title } })).statusCode).toBe(200);
    };
    const [shared, own] = [await make('ada'), await make('bob')];
    const object = { type: plans, id: shared };
    const access = { subject: `user:${person('bob').user.id}`, object };
    await grant(kit.app.db, { ...access, action: 'view' });
    const [client, heard] = await overHttp('bob');
    const [theirs, mine] = [`kit://v1/plans/${shared}`, `kit://v1/plans/${own}`];
    const subscription = await client.listen({ resourceSubscriptions: [theirs, mine] });
    expect(subscription.honoredFilter.resourceSubscriptions).toEqual([theirs, mine]);
    await edit('ada', shared, 'while shared');
    await expect.poll(() => heard, { timeout: 60_000 }).toContain(theirs);
    let isOpen = true;
    void subscription.closed.then(() => (isOpen = false));
    /** What is told in order is told once this is. */
    const caughtUp = async (title: string): Promise<void> => {
      heard.splice(0, heard.length, ...heard.filter((uri) => uri !== mine));
      await edit('bob', own, title);
      await expect.poll(() => !isOpen || heard.includes(mine), { timeout: 60_000 }).toBe(true);
    };
    heard.length = 0;
    expect(await revoke(kit.app.db, access)).toBe(true);
    // The record is gone for the caller: that is told, or ends the subscription.
    await expect.poll(() => !isOpen || heard.includes(theirs), { timeout: 60_000 }).toBe(true);
    heard.length = 0;
    await edit('ada', shared, 'not for bob');
    // Two, so that the other one had its turn.
    for (const title of ['then', 'at the end']) await caughtUp(title);
    expect(heard).not.toContain(theirs);
  });

  test(
    'a subscription to thousands of resources is bounded by the streams of its caller, and leaves none behind',
    { timeout: 120_000 },
    async () => {
      const [client] = await overHttp('bob');
      const many = Array.from({ length: 3_000 }, (_, index) => `${LIST}/00000000-0000-7000-8000-${String(index).padStart(12, '0')}`);
      const { streamsPerCaller } = INPUT_LIMITS;
      const subscription = await client.listen({ resourceSubscriptions: many });
      expect(subscription.honoredFilter.resourceSubscriptions).toHaveLength(streamsPerCaller);
      await subscription.close();
      // The server learns of it by the end of the connection.
      const freed = async () => {
        const next = await client.listen({ resourceSubscriptions: many });
        const count = next.honoredFilter.resourceSubscriptions?.length ?? 0;
        await next.close();
        return count;
      };
      await expect.poll(freed, { timeout: 60_000 }).toBe(streamsPerCaller);
    },
  );

  test('a key without the scope follows nothing', { timeout: 120_000 }, async () => {
    const { user } = person('ada');
    const { raw } = await createApiKey(kit.app.db, { user, name: 'other', scopes: ['other:read'] });
    people['other'] = { ...person('ada'), key: raw };
    const [client] = await overHttp('other');
    const subscription = await client.listen({ resourceSubscriptions: [LIST, one('ada')] });
    expect(subscription.honoredFilter.resourceSubscriptions).toBeUndefined();
    expect(await subscription.closed).toBe('graceful');
  });

  test('the versions of 2025 subscribe over stdio; over HTTP they have no connection that lasts', { timeout: 120_000 }, async () => {
    const [web] = await overHttp('ada', 'legacy');
    expect(web.getServerCapabilities()?.resources).toEqual({});
    const [client, heard] = await overStdio('ada', 'legacy');
    expect(client.getServerCapabilities()?.resources).toEqual({ subscribe: true });
    await expect(client.subscribeResource({ uri: 'kit://v1/still' })).rejects.toThrow(/not found/i);
    await client.subscribeResource({ uri: LIST });
    await client.subscribeResource({ uri: one('ada') });
    await change('bob', 'not told');
    await change('ada', 'told');
    await expect.poll(() => new Set(heard), { timeout: 60_000 }).toEqual(new Set([LIST, one('ada')]));
    await client.unsubscribeResource({ uri: LIST });
    heard.length = 0;
    await change('ada', 'told of one');
    await expect.poll(() => heard, { timeout: 60_000 }).toEqual([one('ada')]);
  });
});
