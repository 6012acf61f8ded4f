import { get, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { CrudController, resource } from '../../src/crud/index.ts';
import { createTable, migration, model, t } from '../../src/db/index.ts';
import { isAuthenticated } from '../../src/permissions/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { testApp, type TestApp } from '../../src/testing/test-app.ts';
import type { Authenticator } from '../../src/auth/index.ts';

// What docs/guide/tenancy.md declares for apps with many streams: `memberships` answers for all with one statement.

const columns = { id: t.int().pk(), tenant: t.text(40).readOnly(), text: t.text() };
const indexes = [{ columns: ['tenant', 'id'] }];
const volumes = model('volumes', columns, { indexes });
const tables = {
  name: 'volumes',
  models: [volumes],
  migrations: [migration('0001_initial', [createTable('volumes', columns, { indexes })])],
};
class Volumes extends CrudController(resource(volumes, { tenant: 'tenant' }), {
  permission: isAuthenticated,
  // More than the buffers of a loopback connection, and no limit of time ends it.
  export: { formats: ['csv'], idleMs: 600_000 },
}) {}
const FILL = {
  postgres: `insert into volumes select n, 'acme', repeat('x', 4000) from generate_series(1, 5000) n`,
  sqlite: `with recursive each(n) as (select 1 union all select n + 1 from each where n < 5000)
    insert into volumes select n, 'acme', printf('%.*c', 4000, 'x') from each`,
} as const;

const byHeader: Authenticator = {
  name: 'header',
  securityScheme: {},
  authenticate: ({ headers }) => {
    const id = String(headers['x-user']);
    return {
      user: { id, username: id, email: null, is_active: true, is_staff: false, is_superuser: false },
      scheme: 'header',
      scopes: null,
    };
  },
};

describeDatabases('an export under way in an app with `memberships`', (database) => {
  const roles = new Map<string, string>();
  let isDown = false;
  let questions: number[] = [];
  let kit: TestApp;
  let url: string;
  const open: IncomingMessage[] = [];
  beforeAll(async () => {
    kit = await testApp({
      database: database.db,
      modules: [tables],
      authenticators: [byHeader],
      tenant: ({ headers }) => headers['x-tenant']?.toString() ?? null,
      memberships: async (_db, asked) => {
        questions.push(asked.length);
        if (isDown) throw new Error('the memberships cannot be read');
        return asked.map(({ userId }) => {
          const role = roles.get(userId);
          return role === undefined ? null : { roles: [role] };
        });
      },
      mount: { '/v1': { '/volumes': Volumes } },
    });
    await database.db.execute(FILL[database.dialect]);
    url = await kit.app.listen({ port: 0 });
  });
  afterEach(() => {
    for (const each of open.splice(0)) each.destroy();
  });
  afterAll(() => kit.close());

  /** An export whose client reads nothing: the connection as the server sees it. */
  const begin = async (user: string): Promise<Socket> => {
    roles.set(user, 'reader');
    const served = new Promise<Socket>((resolve) => kit.app.fastify.server.once('connection', resolve));
    const headers = { 'x-user': user, 'x-tenant': 'acme' };
    const message = await new Promise<IncomingMessage>((resolve, reject) => {
      get(`${url}/v1/volumes/export?format=csv`, { headers, agent: false }, resolve).on('error', reject);
    });
    expect(message.statusCode).toBe(200);
    message.on('error', () => undefined);
    open.push(message);
    return served;
  };
  const ended = (socket: Socket) => vi.waitUntil(() => socket.destroyed, { timeout: 60_000, interval: 20 });

  test('ends when its caller is no longer a member or has other roles; all are asked about together, and others go on', async () => {
    const [left, promoted, stayed] = [await begin('left'), await begin('promoted'), await begin('stayed')];
    questions = [];
    await vi.waitUntil(() => questions.length > 1, { timeout: 60_000, interval: 20 });
    expect(new Set(questions)).toEqual(new Set([3]));
    roles.delete('left');
    roles.set('promoted', 'writer');
    await ended(left);
    await ended(promoted);
    expect(stayed.destroyed).toBe(false);
  });

  test('goes on while the memberships cannot be read, and ends after', async () => {
    const socket = await begin('late');
    roles.delete('late');
    isDown = true;
    questions = [];
    await vi.waitUntil(() => questions.length > 1, { timeout: 60_000, interval: 20 });
    expect(socket.destroyed).toBe(false);
    isDown = false;
    await ended(socket);
  });
});
