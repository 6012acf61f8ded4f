import { expect, test } from 'vitest';
import { createTable, migration, model, t } from '../../db/index.ts';
import { isAuthenticated } from '../../permissions/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { testApp } from '../../testing/test-app.ts';
import { count, CrudController, resource } from '../index.ts';
import { longRoutes } from './long-routes.ts';

const columns = {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  title: t.text(40),
  status: t.text(10),
  rank: t.int(),
};
const indexes = [{ columns: ['owner_id', '-id'] }, { columns: ['owner_id', 'status', '-id'] }];
const notes = model('notes', columns, { indexes });
const openColumns = { ...columns, owner_id: t.uuid() };
const open = model('open_notes', openColumns, { indexes: [{ columns: ['status', '-id'] }] });
const tables = migration('0001_initial', [
  createTable('notes', columns, { indexes }),
  createTable('open_notes', openColumns, { indexes: [{ columns: ['status', '-id'] }] }),
]);

class NotesController extends CrudController(resource(notes, { owner: 'owner_id' }), {
  permission: isAuthenticated,
  filters: { status: ['eq', 'ne'], title: ['contains'], rank: ['gte'] },
  search: ['title'],
  ordering: { by: ['rank'] },
  stats: { by: ['status'], metrics: { rows: count() } },
}) {}
class OpenController extends CrudController(resource(open, { unscoped: true }), {
  permission: isAuthenticated,
  filters: { status: ['eq'] },
}) {}

const OWNERS = ['0190a1b2-0000-7000-8000-000000000001', '0190a1b2-0000-7000-8000-000000000002'];

describeDatabases('routes that read many rows of the tables as they are', (database) => {
  test('W032: each route is named with its parameters, the rows of the caller who has the most, a plan, and the index that helps', async () => {
    await using app = await testApp({
      database: database.db,
      mount: { '/v1': { '/notes': NotesController, '/open': OpenController } },
      modules: [{ name: 'tables', models: [notes, open], migrations: [tables] }],
    });
    const text = "insert into $table (id, owner_id, title, status, rank) values ($1, $2, 'a secret title', 'open', 1)";
    for (const table of ['notes', 'open_notes']) {
      for (let row = 0; row < 60; row += 1) {
        const id = `0190a1b2-0000-7000-8000-${String(row).padStart(12, '0')}`;
        await database.db.query(text.replace('$table', table), [id, OWNERS[row < 40 ? 0 : 1]]);
      }
    }
    expect(await longRoutes(app.app, 60)).toEqual([]);
    const found = await longRoutes(app.app, 39);
    const about = (place: string) => found.filter(({ fault }) => fault.message.startsWith(`${place} `)).map(({ fault }) => fault);
    const [list] = about('GET /v1/notes');
    // The largest owner has 40 of 60 rows. Pages in the order of the key and of one status are served.
    expect(list?.message).toContain(
      'can read 40 rows of notes: with search, status__ne, title__contains, rank__gte, ordering=rank, ordering=-rank. The plan with search: ',
    );
    expect(list?.message).toMatch(database.db.dialect === 'sqlite' ? /(SEARCH|SCAN)/ : /(Scan|Limit)/);
    expect(list?.hint).toContain('Indexes that help: (owner_id, rank, id). No');
    expect(list?.hint).toContain('No index helps where no index serves what title contain; a condition on status, which no index serves');
    expect(about('GET /v1/notes/stats')[0]?.message).toContain('can read 40 rows of notes: with any parameters');
    // Every page of the other is served: in the order of the key, and by its status.
    expect(found.filter(({ resource: name }) => name === 'open_notes')).toEqual([]);
    expect(JSON.stringify(found)).not.toMatch(/secret|0190a1b2/);
  });

  test('without the index of the owner, a caller reads the rows of all', async () => {
    const bare = model('bare_notes', columns);
    class BareController extends CrudController(resource(bare, { owner: 'owner_id' }), { permission: isAuthenticated }) {}
    await using app = await testApp({
      database: database.db,
      mount: { '/v1': { '/bare': BareController } },
      modules: [{ name: 'bare', models: [bare], migrations: [migration('0001_initial', [createTable('bare_notes', columns)])] }],
    });
    for (let row = 0; row < 60; row += 1)
      await database.db.query("insert into bare_notes (id, owner_id, title, status, rank) values ($1, $2, 'x', 'open', 1)", [
        `0190a1b2-0000-7000-8000-${String(row).padStart(12, '0')}`,
        OWNERS[row < 40 ? 0 : 1],
      ]);
    const [fault] = await longRoutes(app.app, 59);
    expect(fault?.fault.message).toContain('GET /v1/bare can read 60 rows of bare_notes: with no parameters.');
    expect(fault?.fault.hint).toBe('Indexes that help: (owner_id, -id).');
  });
});
