import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Authenticator } from '../../auth/request/authenticator.ts';
import type { User } from '../../auth/people/principal.ts';
import { crudOf, resource, visibleTo } from '../../crud/index.ts';
import { createTable, migration, model, t } from '../../db/index.ts';
import { uuidv7 } from '../../db/values/uuidv7.ts';
import { isSuperuser } from '../../permissions/index.ts';
import { describeDatabases, testApp, type TestApp } from '../../testing/index.ts';
import { audit, AuditController } from './index.ts';

/** Staff see public letters, and nobody but superusers sees the price. Notes are their owner's. */
const letters = model('letters', {
  id: t.uuidv7().pk(),
  title: t.text(50),
  price: t.text(20).nullable(),
  is_public: t.bool().dbDefault(true),
});
const letterResource = resource(letters, {
  unscoped: true,
  admin: { rows: { is_public: true } },
  fields: { price: visibleTo(isSuperuser) },
});
const notes = model('notes', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), title: t.text(50) });
const noteResource = resource(notes, { owner: 'owner_id' });

const person = (name: string, is_superuser = false): User => ({
  id: uuidv7(),
  username: name,
  email: null,
  is_active: true,
  is_staff: true,
  is_superuser,
});
const people: Readonly<Record<string, User>> = { root: person('root', true), sue: person('sue'), tom: person('tom') };
const byHeader: Authenticator = {
  name: 'header',
  securityScheme: {},
  authenticate: ({ headers }) => ({ user: people[String(headers['x-user'])] as User, scheme: 'header', scopes: null }),
};

describeDatabases('AuditController and the rules of resources', (database) => {
  let kit: TestApp;
  beforeAll(async () => {
    kit = await testApp({
      database: database.db,
      authenticators: [byHeader],
      modules: [
        audit(),
        {
          name: 'letters',
          models: [letters, notes],
          resources: [letterResource, noteResource],
          migrations: [migration('0001_initial', [createTable('letters', letters.columns), createTable('notes', notes.columns)])],
        },
      ],
      mount: { '/v1': { '/audit': AuditController } },
    });
  });
  afterAll(() => kit.close());

  const entriesOf = async (name: string, id: string) => {
    const get = async (path: string) =>
      (await kit.inject({ method: 'GET', url: `/v1/audit${path}`, headers: { 'x-user': name } })).json<Record<string, unknown>>();
    const { items } = (await get(`?target_id=${id}`)) as unknown as { items: Record<string, unknown>[] };
    // One entry alone says the same as the list.
    for (const item of items) expect(await get(`/${String(item['id'])}`)).toEqual(item);
    return items;
  };

  test('an entry shows the values of records that its reader may see, and the columns that its reader may see', async () => {
    const as = { user: people['root'] as User };
    const write = crudOf(kit.app, letterResource).as(as).write();
    const open = await write.create({ title: 'open letter', price: 'price-1' });
    await write.update(open.id, { title: 'open again', price: 'price-3' });
    const closed = await write.create({ title: 'closed letter', price: 'price-2', is_public: false });
    const gone = await write.create({ title: 'gone letter' });
    await write.destroy(gone.id);
    const note = await crudOf(kit.app, noteResource)
      .as({ user: people['tom'] as User })
      .write()
      .create({ title: 'own note' });
    for (const [name, id, shown, hidden] of [
      ['sue', open.id, ['open letter', 'open again'], ['price']],
      ['sue', closed.id, [], ['closed letter', 'price-2']],
      ['sue', note.id, [], ['own note']],
      ['sue', gone.id, [], ['gone letter']],
      ['tom', note.id, ['own note'], []],
      ['root', open.id, ['open letter', 'open again', 'price-1', 'price-3'], []],
      ['root', closed.id, ['closed letter', 'price-2'], []],
      ['root', note.id, ['own note'], []],
      ['root', gone.id, ['gone letter'], []],
    ] as const) {
      const items = await entriesOf(name, id);
      expect(items.length).toBeGreaterThan(0);
      const text = JSON.stringify(items);
      for (const value of shown) expect(text).toContain(value);
      for (const value of hidden) expect(text).not.toContain(value);
      const isHidden = shown.length === 0;
      expect(items.map((item) => item['values_hidden'])).toEqual(items.map(() => isHidden));
    }
    const [entry] = await entriesOf('sue', closed.id);
    expect(entry).toMatchObject({
      action: 'letter.created',
      target_id: closed.id,
      actor_name: 'root',
      before: null,
      after: null,
      metadata: null,
    });
  });
});
