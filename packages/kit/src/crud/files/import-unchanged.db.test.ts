import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { byName, people, type Person } from '../../../test/crud/shop.ts';
import { createTable, migration, model, t } from '../../db/index.ts';
import { insertMany } from '../../db/rows/repository.ts';
import { hasRule, isAuthenticated, isOwner, isStaff } from '../../permissions/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { testApp, type TestApp } from '../../testing/test-app.ts';
import { CrudController, resource, visibleTo, writableBy } from '../index.ts';

const firms = model('firms', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), name: t.text(20) });
const cards = model('cards', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  sku: t.text(20).unique(),
  title: t.text(40),
  /** Only the owner of a row writes it. */
  note: t.text(40).nullable(),
  /** Only the owner of a row sees and writes it. */
  memo: t.text(40).nullable(),
  /** A rule of the application decides on the row. */
  price: t.decimal(8, 2).nullable(),
  firm_id: t.ref(() => firms).nullable(),
  facts: t.json(z.object({ color: z.string(), size: z.object({ cm: z.number() }).optional() })).nullable(),
});
const isOpen = (_context: object, row: unknown) =>
  row === undefined ? ('unknown' as const) : (row as { readonly title: string }).title.startsWith('open');
const cardResource = resource(cards, {
  owner: { column: 'owner_id', unless: isStaff },
  fields: { note: writableBy(isOwner()), memo: visibleTo(isOwner()), price: writableBy(hasRule(isOpen)) },
});
class CardController extends CrudController(cardResource, {
  permission: isAuthenticated,
  ordering: { by: ['sku'], default: ['sku'] },
  export: ['csv', 'jsonl'],
  import: { formats: ['csv', 'jsonl'], by: 'sku' },
}) {}

describeDatabases('an import of what was exported', (database) => {
  let app: TestApp;
  beforeAll(async () => {
    app = await testApp({
      database: database.db,
      authenticators: [byName],
      mount: { '/v1': { '/cards': CardController } },
      modules: [
        {
          name: 'cards',
          models: [firms, cards],
          resources: [resource(firms, { owner: 'owner_id' })],
          migrations: [
            migration('0001_initial', [
              createTable('firms', firms.columns),
              createTable('cards', { ...cards.columns, firm_id: t.ref('firms').nullable() }),
            ]),
          ],
        },
      ],
    });
  });
  beforeEach(async () => {
    await database.db.query('delete from cards');
    const [firm] = await insertMany(database.db, firms, [{ owner_id: people.bob.id, name: 'of bob' }]);
    const row = (owner: Person, sku: string, title: string) => ({
      owner_id: people[owner].id,
      sku,
      title,
      note: `note ${sku}`,
      memo: `memo ${sku}`,
      price: '5.00',
      firm_id: (firm as { id: string }).id,
    });
    await insertMany(database.db, cards, [row('ann', 'a', 'open'), row('ann', 'b', 'closed'), row('sue', 'c', 'closed')]);
  });
  afterAll(() => app.close());

  const exported = async (person: Person, format: string) =>
    (await app.inject({ url: `/v1/cards/export?format=${format}`, headers: { 'x-user': person } })).body;
  const send = async (person: Person, format: string, payload: string, mode = 'upsert') => {
    const type = format === 'csv' ? 'text/csv' : 'application/x-ndjson';
    const headers = { 'x-user': person, 'content-type': type };
    const response = await app.inject({ method: 'POST', url: `/v1/cards/import?mode=${mode}`, headers, payload });
    return { status: response.statusCode, body: response.json() };
  };
  const stored = () => database.db.query<Record<string, unknown>>('select * from cards order by sku');
  const errorsOf = ({ body }: { body: { errors: { location: unknown[]; code: string }[] } }) =>
    body.errors.map(({ location, code }) => `${location.join('.')} ${code}`);

  test.each(['csv', 'jsonl'])('as %s changes nothing, although rules about the row decide who writes a column', async (format) => {
    const before = await stored();
    for (const [person, rows] of [
      ['ann', 2],
      ['sue', 3],
    ] as const) {
      const file = await exported(person, format);
      expect(file.includes('memo a')).toBe(person === 'ann');
      const { status, body } = await send(person, format, file);
      expect([status, body.created, body.updated]).toEqual([201, 0, rows]);
      // Neither the notes of others nor prices of closed rows are hers to write.
      expect(body.ignored).toEqual(
        expect.arrayContaining(person === 'sue' ? ['id', 'owner_id', 'note', 'price'] : ['id', 'owner_id', 'price']),
      );
    }
    expect(await stored()).toEqual(before);
  });

  test('403 where a value is another one, or where the caller does not see it on the row; nothing is written', async () => {
    const before = await stored();
    for (const [person, line, fields] of [
      ['sue', { sku: 'a', title: 'open', note: 'other' }, ['note']],
      ['sue', { sku: 'a', title: 'open', note: null }, ['note']],
      ['sue', { sku: 'a', title: 'open', memo: 'guess' }, ['memo']],
      ['sue', { sku: 'a', title: 'open', memo: 'memo a' }, ['memo']],
      ['ann', { sku: 'b', title: 'closed', price: '6.00' }, ['price']],
    ] as const) {
      const { status, body } = await send(person, 'jsonl', JSON.stringify(line));
      expect([line, status, body.code, body.fields]).toEqual([line, 403, 'permission_denied', fields]);
    }
    expect(await stored()).toEqual(before);
    const changed = await send('ann', 'jsonl', JSON.stringify({ sku: 'a', title: 'open', note: 'mine', memo: 'too', price: '7.00' }));
    expect([changed.status, changed.body.ignored]).toEqual([201, []]);
    expect((await stored())[0]).toMatchObject({ note: 'mine', memo: 'too', price: '7.00' });
  });

  test('a reference that the row has already is not asked again; another one is', async () => {
    const [card] = await stored();
    const same = await send('ann', 'jsonl', JSON.stringify({ sku: 'a', title: 'open two', firm_id: card!['firm_id'] }));
    expect([same.status, same.body.updated]).toEqual([201, 1]);
    for (const line of [
      { sku: 'b', title: 'closed', firm_id: '00000000-0000-7000-8000-00000000ffff' },
      { sku: 'new', title: 'new', firm_id: card!['firm_id'] },
    ]) {
      const other = await send('ann', 'jsonl', JSON.stringify(line));
      expect([other.status, errorsOf(other)]).toEqual([422, ['body.1.firm_id unknown_reference']]);
    }
  });

  test.each([
    ['jsonl', '{"sku":"x","title":"x","facts":{"color":"red","colour":"blue"}}', 'body.1.facts.colour unknown_field'],
    ['jsonl', '{"sku":"x","title":"x","facts":{"color":"red","size":{"cm":1,"inch":2}}}', 'body.1.facts.size.inch unknown_field'],
    ['csv', 'sku,title,facts\nx,x,"{""color"":""red"",""colour"":""blue""}"', 'body.2.facts.colour unknown_field'],
  ])('as %s, unknown members of a JSON column are errors, as in a body: %s', async (format, file, fault) => {
    for (const mode of ['create', 'upsert']) {
      const refused = await send('ann', format, file, mode);
      expect([refused.status, errorsOf(refused)]).toEqual([422, [fault]]);
    }
    expect(await stored()).toHaveLength(3);
    const known = await send('ann', 'jsonl', '{"sku":"x","title":"x","facts":{"color":"red","size":{"cm":1}}}');
    expect(known.status).toBe(201);
  });

  test('a CSV file without a header is 422; one with a header and no rows, and JSON Lines without lines, import nothing', async () => {
    for (const file of ['', '\n', '\r\n\r\n', '\uFEFF']) {
      const refused = await send('ann', 'csv', file);
      expect([refused.status, errorsOf(refused)]).toEqual([422, ['body.1 required']]);
      expect(refused.body.errors[0].message).toContain('header');
    }
    for (const [format, file] of [
      ['csv', 'sku,title\r\n'],
      ['jsonl', ''],
    ] as const) {
      const { status, body } = await send('ann', format, file);
      expect([status, body]).toEqual([201, { created: 0, updated: 0, dry_run: false, ignored: [] }]);
    }
  });
});
