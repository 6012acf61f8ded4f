import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { people, startShop, type ShopApp } from '../../test/crud/shop.ts';
import { createTable, insert, migration, model, t, update, type Db } from '../db/index.ts';
import { modelResource } from '../screens/screen.ts';
import { createApp } from '../app/assemble/create-app.ts';
import type { StartUpError } from '../app/check/start-up-error.ts';
import { jsonSchema } from '../http/declare/json-schema.ts';
import { route } from '../http/declare/route.ts';
import { isAuthenticated } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { AdminAccess } from './staff/admin-access.ts';
import { crudOf, CrudController, resource } from './index.ts';

const tokens = model('tokens', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  name: t.text(20),
  digest: t.text(80).sensitive(),
  is_revoked: t.bool().default(false).readOnly(),
});
/** What the functions of the module recorded: they do it, whoever calls them. */
const recorded: string[] = [];
let lastRaw = '';

async function issueToken(tx: Db, owner: string, name: string) {
  lastRaw = `raw-${randomUUID()}`;
  const row = await insert(tx, tokens, { owner_id: owner, name, digest: `hash of ${lastRaw.length}` });
  recorded.push(`issued ${name}`);
  return { row, raw: lastRaw };
}
async function renameToken(tx: Db, id: string, name: string | undefined) {
  recorded.push(`renamed ${String(name)}`);
  return name === undefined ? undefined : update(tx, tokens, id, { name });
}
async function revokeToken(tx: Db, id: string) {
  recorded.push('revoked');
  await update(tx, tokens, id, { is_revoked: true });
}

const tokenResource = resource(tokens, {
  owner: 'owner_id',
  input: ['name'],
  writes: 'verbs',
  once: { token: { on: ['create', 'rotate', 'renew', 'plain'], description: 'The whole token.' } },
  actions: {
    renew: {
      run: async ({ row, tx, once }) => {
        await update(tx, tokens, row.id, { digest: 'hash of another' });
        once('token', (lastRaw = `raw-${randomUUID()}`));
      },
    },
  },
  hooks: {
    create: async ({ input, tx, user, once }) => {
      const { row, raw } = await issueToken(tx, user!.id, input.name);
      if (input.name !== 'forgotten') once('token', raw);
      if (input.name === 'misspelt') once('tokn', raw);
      return row;
    },
    update: async ({ before, input, tx }, next) => {
      await renameToken(tx, before.id, input.name);
      return input.name === 'twice' ? next(input) : before;
    },
    destroy: ({ before, tx }) => revokeToken(tx, before.id),
  },
  admin: { rows: true },
});
/** Its response does not say that the value is sensitive. */
const Anything = jsonSchema<Record<string, unknown>>({ type: 'object', additionalProperties: true });

class TokenController extends CrudController(tokenResource, { permission: isAuthenticated, bulk: { update: true, destroy: true } }) {
  plain = route.post(
    '/:id/plain',
    { params: this.keyParams, permission: isAuthenticated, atomic: true, idempotent: true, response: Anything },
    async (context) => this.presentOnce(context, await this.find(context, context.params.id), { token: (lastRaw = `raw-${randomUUID()}`) }),
  );

  rotate = route.post(
    '/:id/rotate',
    { params: this.keyParams, permission: isAuthenticated, atomic: true, idempotent: true, response: this.onceSchema('rotate') },
    async (context) => {
      const row = await this.find(context, context.params.id);
      context.log.info({ given: await this.presentOnce(context, row, { token: (lastRaw = 'raw-rotated') }) }, 'rotated');
      return this.presentOnce(context, row, { token: lastRaw });
    },
  );
}

describeDatabases('writes by verbs, and values that are shown once', (database) => {
  let app: ShopApp;
  const audited: string[] = [];
  beforeAll(async () => {
    app = await startShop({
      database: database.db,
      mount: { '/v1': { '/tokens': TokenController } },
      modules: [
        {
          name: 'tokens',
          models: [tokens],
          migrations: [migration('0001_initial', [createTable('tokens', tokens.columns)])],
          provides: () => ({ audit: { record: async (_tx, entries) => void audited.push(...entries.map(({ action }) => action)) } }),
        },
      ],
    });
  });
  beforeEach(() => {
    recorded.length = 0;
  });
  afterAll(() => app.close());
  const call = (method: string, path = '', body?: unknown, headers: Record<string, string> = {}) =>
    app.call('ann', method, `tokens${path}`, body, headers);
  const count = async () => (await database.db.query('select id from tokens')).length;
  const made = async () => (await call('POST', '', { name: 'CI' })).body as { id: string; token: string };

  test('a create shows the value beside the row, once: no-store, and never again', async () => {
    const { status, body, headers } = await call('POST', '', { name: 'CI' });
    expect([status, body, headers['cache-control']]).toEqual([
      201,
      { id: expect.any(String), owner_id: people.ann.id, name: 'CI', is_revoked: false, token: lastRaw },
      'no-store',
    ]);
    expect(headers['location']).toContain(body.id);
    const read = await call('GET', `/${body.id}`);
    expect([read.body.token, read.headers['cache-control']]).toEqual([undefined, 'private, no-cache']);
    expect((await call('GET', `?fields=id`)).body.items[0].token).toBeUndefined();
    expect((await call('POST', '?fields=id', { name: 'CI' })).body).toEqual({ id: expect.any(String), token: lastRaw });
  });

  test('a route of the controller’s own shows it, too; the log masks it', async () => {
    const { id } = await made();
    const { status, body, headers } = await call('POST', `/${id}/rotate`);
    expect([status, body.id, body.token, headers['cache-control']]).toEqual([200, id, 'raw-rotated', 'no-store']);
    const line = app.records.find(({ msg }) => msg === 'rotated');
    expect(line?.['given']).toMatchObject({ id, token: '[masked]' });
    expect(JSON.stringify(app.records)).not.toContain('raw-');
  });

  test('an action shows it, too', async () => {
    const { id, token } = await made();
    const { status, body, headers } = await call('POST', `/${id}/renew`);
    expect([status, body, headers['cache-control']]).toMatchObject([200, { id, name: 'CI', token: lastRaw }, 'no-store']);
    expect(body.token).not.toBe(token);
  });

  test.each([
    ['POST', '', { name: 'keyed' }],
    ['POST', '/rotate', undefined],
    ['POST', '/renew', undefined],
    ['POST', '/plain', undefined],
  ])('it is stored for no idempotency key, whatever the schema of the response: %s %s', async (method, path, body) => {
    const { id } = await made();
    const key = { 'idempotency-key': randomUUID() };
    const url = path === '' ? '' : `/${id}${path}`;
    const first = await call(method, url, body, key);
    expect([first.status < 300, first.body.token]).toEqual([true, lastRaw]);
    const again = await call(method, url, body, key);
    expect([again.status, again.body.code]).toEqual([409, 'response_not_kept']);
    const stored = JSON.stringify(await database.db.query('select * from kit_idempotency'));
    expect(stored).not.toContain(Buffer.from(lastRaw).toString('hex'));
    expect(stored).not.toContain(lastRaw);
  });

  test('the document marks it as sensitive', async () => {
    const { paths, components } = (await app.inject({ url: '/openapi.json' })).json();
    expect(components.schemas.IssuedToken.allOf).toEqual([
      { $ref: '#/components/schemas/Token' },
      {
        type: 'object',
        properties: { token: { type: 'string', 'x-sensitive': true, description: 'The whole token.' } },
        required: ['token'],
      },
    ]);
    expect(paths['/v1/tokens/{id}/rotate'].post.responses['200'].content['application/json'].schema).toEqual({
      $ref: '#/components/schemas/IssuedToken',
    });
    expect(components.schemas.Token.properties.token).toBeUndefined();
  });

  test.each(['forgotten', 'misspelt'])(
    'nothing is written where the hook does not give the value that the response promises: %s',
    async (name) => {
      const before = await count();
      expect((await call('POST', '', { name })).status).toBe(500);
      expect(await count()).toBe(before);
    },
  );

  test('programs and the admin site cannot create a row whose value nobody would see', async () => {
    const user = { id: people.ann.id, username: 'ann', email: null, is_active: true, is_staff: true, is_superuser: false };
    const before = await count();
    await expect(
      crudOf(app.app, tokenResource)
        .as({ user, tenant: null })
        .write()
        .create({ name: 'lost' } as never),
    ).rejects.toThrow('nobody would see');
    await expect(new AdminAccess(app.app, tokenResource, { user, tenant: null }).create({ name: 'lost' }, { sent: [] })).rejects.toThrow(
      'nobody would see',
    );
    expect(await count()).toBe(before);
    expect(modelResource(tokenResource).creation).toEqual({ refused: expect.stringContaining('shown once') });
  });

  test('the functions write and record; the lane does not record again, whichever way a change comes', async () => {
    const { id } = await made();
    const other = await made();
    audited.length = 0;
    recorded.length = 0;
    expect((await call('PATCH', `/${id}`, { name: 'new' })).body).toMatchObject({ id, name: 'new' });
    expect((await call('PATCH', `/${id}`, {})).status).toBe(200);
    expect(
      (
        await call('POST', '/bulk-update', {
          items: [
            { id, name: 'b' },
            { id: other.id, name: 'c' },
          ],
        })
      ).body.items,
    ).toMatchObject([{ name: 'b' }, { name: 'c' }]);
    for (const _again of [1, 2]) expect((await call('DELETE', `/${id}`)).status).toBe(204);
    expect((await call('POST', '/bulk-delete', { ids: [other.id] })).status).toBe(204);
    expect((await call('GET', `/${id}`)).body).toMatchObject({ name: 'b', is_revoked: true });
    expect(recorded).toEqual(['renamed new', 'renamed undefined', 'renamed b', 'renamed c', 'revoked', 'revoked', 'revoked']);
    expect(audited).toEqual([]);
  });

  test('a hook that calls next() changes nothing', async () => {
    const { id } = await made();
    expect((await call('PATCH', `/${id}`, { name: 'twice' })).status).toBe(500);
    expect((await call('GET', `/${id}`)).body.name).toBe('CI');
  });

  test('another user’s row is 404, and the functions are not called', async () => {
    const { id } = await made();
    recorded.length = 0;
    expect((await app.call('bob', 'PATCH', `tokens/${id}`, { name: 'mine' })).status).toBe(404);
    expect((await app.call('bob', 'DELETE', `tokens/${id}`)).status).toBe(404);
    expect(recorded).toEqual([]);
  });
});

describe('at start-up', () => {
  const Loose = jsonSchema({ type: 'object' });
  const faultsOf = (given: object, options: object = {}) => {
    class Wrong extends CrudController(resource(tokens, given as never), {
      permission: isAuthenticated,
      bulk: { destroy: true },
      ...options,
    }) {
      rotate = route.post('/rotate', { permission: isAuthenticated, response: Loose }, () => ({}));
      plain = route.post('/plain', { permission: isAuthenticated, response: Loose }, () => ({}));
    }
    try {
      createApp({ database: 'sqlite::memory:', log: { level: 'silent' }, mount: { '/v1': { '/tokens': Wrong } } });
      return [];
    } catch (error) {
      return (error as StartUpError).faults.map(({ id, message }) => `${id} ${message}`);
    }
  };
  const declared = tokenResource.options;
  const start = (given: object, options: object) => faultsOf({ ...declared, ...given }, options);
  const withoutHooks = (...names: readonly string[]) =>
    faultsOf({
      ...declared,
      hooks: Object.fromEntries(Object.entries(declared.hooks as object).filter(([name]) => !names.includes(name))),
    });

  test('a good declaration starts', () => {
    expect(start({}, {})).toEqual([]);
  });

  test('an offered write without a hook is a fault', () => {
    expect(withoutHooks('destroy')).toEqual([
      expect.stringMatching(/^E013 Wrong: offers destroy, but resource\(tokens\) writes by verbs and has no destroy hook/),
      expect.stringMatching(/^E013 Wrong: offers bulkDestroy,/),
    ]);
    expect(withoutHooks('update')).toEqual([expect.stringMatching(/offers update,/), expect.stringMatching(/offers partialUpdate,/)]);
  });

  test.each([
    [{ audit: true }, {}, /^E013 .*audit is set, but the functions that its hooks call record/],
    [{ events: true }, {}, /^E013 .*events is set/],
    [{ once: { token: { on: ['create', 'rotat'] } } }, {}, /^E012 .*once.token refers to "rotat"/],
    [{ once: { name: { on: ['create'] } } }, {}, /^E018 .*once.name takes the name of a column/],
    [
      { actions: { renew: { on: 'selection', run: () => undefined } } },
      {},
      /^E013 .*once.token is shown by "renew", whose response has no single record/,
    ],
    [{}, { bulk: { create: true } }, /^E013 .*offers bulkCreate, whose response would not show once.token/],
    [{}, { import: { formats: ['csv'] } }, /^E013 .*offers import, whose response would not show once.token/],
  ])('%j %j', (given, options, expected) => {
    expect(start(given, options)).toEqual([expect.stringMatching(expected)]);
  });

  test('misspelt options fail where they are written', () => {
    expect(() => resource(tokens, { unscoped: true, writes: 'verb' as never })).toThrow(/writes is "verb"/);
    expect(() => resource(tokens, { unscoped: true, once: { token: { in: ['create'] } } as never })).toThrow(/once/);
  });
});
