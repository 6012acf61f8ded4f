import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdminApp, type Browser } from '../../test/admin/admin-app.ts';
import type { Module } from '../app/index.ts';
import { crudOf, resource } from '../crud/index.ts';
import { recordSight } from '../crud/staff/record-sight.ts';
import { createTable, insert, migration, model, t } from '../db/index.ts';
import { jsonSchema } from '../http/declare/json-schema.ts';
import { hasRecentLogin } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { screen } from './screen.ts';
import { chart, section } from './screen-words.ts';

const lamps = model('lamps', { id: t.uuidv7().pk(), name: t.text(30), watts: t.int(), broken_at: t.timestamp().nullable() });
const lampResource = resource(lamps, {
  audiences: { staff: { rows: true } },
  computed: {
    state: {
      requires: ['broken_at'],
      response: jsonSchema<'lit' | 'broken'>({ type: 'string', enum: ['lit', 'broken'] }),
      value: ({ broken_at: broken }) => (broken === null ? 'lit' : 'broken'),
    },
  },
  actions: {
    break: { run: (_, next) => next({ broken_at: new Date() }) },
    melt: { permission: hasRecentLogin, run: () => undefined },
  },
});
const notes = model('notes', { id: t.uuidv7().pk(), text: t.text(30) });

const hall: Module = {
  name: 'hall',
  requires: ['accounts'],
  models: [lamps, notes],
  resources: [lampResource],
  migrations: [migration('0001_initial', [createTable('lamps', lamps.columns), createTable('notes', notes.columns)])],
  admin: {
    resources: [
      screen(lampResource, {
        label: 'Lamps',
        singular: 'lamp',
        group: 'Hall',
        columns: [{ name: 'name', label: 'Called' }, 'state', { name: 'power', kind: 'text' }],
        tones: { state: { lit: 'good', broken: { value: 'out', tone: 'bad', hint: 'Replace it.' } } },
        cells: { power: ({ watts }) => `${watts} W` },
        state: 'state',
        filters: [
          { column: 'watts', name: 'power', label: 'Power' },
          {
            name: 'state',
            label: 'State',
            kind: 'select',
            choices: ['lit', 'broken'].map((value) => ({ value, label: value })),
            where: (value) => ({ broken_at: { isnull: value === 'lit' } }) as never,
          },
        ],
        fields: { watts: { help: 'As printed on it.' } },
        actions: [{ name: 'break', label: 'Break it', tone: 'bad', done: 'broken', when: ({ broken_at: broken }) => broken === null }],
        creation: { refused: 'Lamps are delivered.' },
        sections: [
          section<{ readonly watts: number }>(({ row }) => ({ kind: 'text', title: 'Advice', text: row.watts > 50 ? 'Dim it.' : 'Fine.' })),
          chart(({ range }) => ({ kind: 'text', title: 'Range', text: range })),
        ],
      }),
      screen(notes),
    ],
  },
};

describeDatabases('screen(resource, words)', (database) => {
  let site: AdminApp;
  let staff: Browser;
  beforeAll(async () => {
    site = await new AdminApp(database.db, [hall]).ready();
    staff = await site.browser();
  });
  afterAll(() => site.close());

  const lamp = async (watts: number, broken: Date | null = null) =>
    (await insert(database.db, lamps, { name: `lamp ${watts}`, watts, broken_at: broken })).id;
  const titles = async (query: string) =>
    (await site.get(staff, `resources/lamps?${query}`)).body.items.map(({ title }: { title: string }) => title);

  test('columns have the words, a state its tone, and a cell what the words make of the item', async () => {
    const shape = (await site.get(staff, 'session')).body.site.resources.find(({ name }: { name: string }) => name === 'lamps');
    expect(shape).toMatchObject({ label: 'Lamps', group: 'Hall', creation: { refused: 'Lamps are delivered.' } });
    expect(shape.columns).toMatchObject([{ label: 'Called' }, { name: 'state', kind: 'state' }, { name: 'power', label: 'Power' }]);
    const id = await lamp(11, site.clock.now());
    const { items } = (await site.get(staff, 'resources/lamps?search=lamp 11')).body;
    expect(items).toMatchObject([{ id, values: { state: { value: 'out', tone: 'bad', hint: 'Replace it.' }, power: '11 W' } }]);
  });

  test('a filter has another name than its column, or a condition of its own', async () => {
    await lamp(21);
    await lamp(22, site.clock.now());
    expect(await titles('filter.power.from=21&filter.power.to=22&filter.state=lit')).toEqual(['lamp 21']);
    expect(await titles('filter.power.from=21&filter.power.to=22&filter.state=broken')).toEqual(['lamp 22']);
    expect((await site.get(staff, 'resources/lamps?filter.watts.from=1')).status).toBe(422);
  });

  test('a page shows the sections, the range of its charts, and the actions that make sense on the record', async () => {
    const id = await lamp(60);
    const before = (await site.get(staff, `resources/lamps/${id}?range=7d`)).body;
    expect(before).toMatchObject({ state: { value: 'lit', tone: 'good' }, range: '7d' });
    expect(before.sections.slice(1, 3)).toMatchObject([{ text: 'Dim it.' }, { text: '7d' }]);
    expect(before.form.fields.find(({ name }: { name: string }) => name === 'watts').help).toBe('As printed on it.');
    expect(before.actions).toEqual(['break', 'melt']);
    expect((await site.act(staff, 'lamps', 'break', [id])).body.message).toBe('1 lamp broken.');
    expect((await site.get(staff, `resources/lamps/${id}`)).body.actions).toEqual(['melt']);
  });

  test('an action that asks for a recent login in its permission asks for it in the site', () => {
    expect(screen(lampResource).needsPresence).toEqual(['melt']);
  });

  test('a model without a resource is reached by staff alone', async () => {
    const declared = screen(notes).brings as typeof lampResource;
    const user = (await site.app.users?.findById(database.db, staff.userId)) ?? null;
    expect(() => crudOf(site.app, declared).as({ user })).toThrow(/says which rows audiences see, and none is set/);
    expect(await crudOf(site.app, declared).as({ user, audience: 'staff' }).rows()).toEqual([]);
  });

  test('staff who see every row know a deleted one: the audit log shows its entries', async () => {
    const { id } = (await site.send(staff, 'POST', 'resources/notes', { text: 'gone' })).body;
    expect((await site.send(staff, 'DELETE', `resources/notes/${id}`)).status).toBe(200);
    const user = (await site.app.users?.findById(database.db, staff.userId)) ?? null;
    const sight = await recordSight(site.app, screen(notes).brings as typeof lampResource, { user }, [id]);
    expect([user?.is_superuser, sight.ids.has(id)]).toEqual([false, true]);
  });
});
