import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { boards, cards, startBoard, told } from '../../../test/crud/board.ts';
import { people, type Person, type ShopApp } from '../../../test/crud/shop.ts';
import { statementsOf } from '../../db/sql/model-statements.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { limits } from '../declare/limits.ts';
import { purgeDeleted, softDeletedModels } from '../write/purge.ts';

const UNKNOWN = '01890000-0000-7000-8000-000000000000';
const DAY_MS = 86_400_000;
const any = { 'if-match': '*' };

describeDatabases('soft deletion', (database) => {
  let board: ShopApp;
  const clock = fakeClock();
  beforeAll(async () => {
    board = await startBoard({ database: database.db, clock });
  });
  beforeEach(() => {
    for (const list of Object.values(told)) list.length = 0;
    clock.advance(1000);
  });
  afterAll(() => board.close());

  const make = async (path: string, values: object, person: Person = 'ann'): Promise<string> => {
    const { status, body } = await board.call(person, 'POST', path, values);
    expect([path, status]).toEqual([path, 201]);
    return body.id as string;
  };
  const status = async (path: string, person: Person = 'ann') => (await board.call(person, 'GET', path)).status;
  const destroy = async (path: string) => (await board.call('ann', 'DELETE', path, undefined, any)).status;
  const restore = (path: string, person: Person = 'ann', headers: Record<string, string> = {}) =>
    board.call(person, 'POST', `${path}/restore`, undefined, headers);
  const stored = async (table: string, id: string) =>
    (await database.db.query<Record<string, unknown>>(`select deleted_at, deletion_id from ${table} where id = $1`, [id]))[0] as {
      deleted_at: Date | null;
      deletion_id: string | null;
    };
  /** A board with two cards, the first with two comments. */
  /** Cards that are there although their board is deleted. */
  const orphans = () =>
    database.db.query('select 1 from cards c join boards b on b.id = c.board_id where b.deleted_at is not null and c.deleted_at is null');
  const tree = async () => {
    const id = await make('boards', { title: 'plan' });
    const [first, second] = [await make('cards', { board_id: id, title: 'a' }), await make('cards', { board_id: id, title: 'b' })];
    const notes = [await make('comments', { card_id: first, text: 'x' }), await make('comments', { card_id: first, text: 'y' })] as const;
    return { id, first, second, notes };
  };

  test('62: a deleted row is gone from list, retrieve, expand, count, filters and foreign keys; its cascade shares its deletion id', async () => {
    const { id, first, second, notes } = await tree();
    const other = await tree();
    expect(await destroy(`boards/${id}`)).toBe(204);
    for (const path of [`boards/${id}`, `cards/${first}`, `cards/${second}`, `comments/${notes[0]}`]) expect(await status(path)).toBe(404);
    expect(await destroy(`boards/${id}`)).toBe(404);
    const { body: list } = await board.call('ann', 'GET', 'boards');
    expect(list.items.map((row: { id: string }) => row.id)).not.toContain(id);
    expect(list.count).toBe(list.items.length);
    const { body: filtered } = await board.call('ann', 'GET', 'cards?board__title=plan');
    expect(filtered.items.every((row: { board_id: string }) => row.board_id !== id)).toBe(true);
    const refused = await board.call('ann', 'POST', 'cards', { board_id: id, title: 'late' });
    expect([refused.status, refused.body.errors]).toMatchObject([422, [{ location: ['body', 'board_id'], code: 'unknown_reference' }]]);
    const deletions = await Promise.all(
      [
        ['boards', id],
        ['cards', first],
        ['cards', second],
        ['comments', notes[1]],
      ].map(async ([table, key]) => (await stored(table as string, key as string)).deletion_id),
    );
    expect([new Set(deletions).size, typeof deletions[0]]).toEqual([1, 'string']);
    expect(await destroy(`cards/${other.first}`)).toBe(204);
    const { body } = await board.call('ann', 'GET', `boards/${other.id}?expand=cards`);
    expect(body.cards.map((row: { id: string }) => row.id)).toEqual([other.second]);
  });

  test('63: restoring brings back exactly the rows of that deletion, not one that was deleted earlier', async () => {
    const { id, first, second, notes } = await tree();
    expect(await destroy(`comments/${notes[0]}`)).toBe(204);
    expect(await destroy(`cards/${second}`)).toBe(204);
    expect(await destroy(`boards/${id}`)).toBe(204);
    const back = await restore(`boards/${id}`);
    expect([back.status, back.body.id, back.body.deleted_at]).toEqual([200, id, null]);
    expect(await Promise.all([`boards/${id}`, `cards/${first}`, `comments/${notes[1]}`].map((path) => status(path)))).toEqual([
      200, 200, 200,
    ]);
    expect(await Promise.all([`cards/${second}`, `comments/${notes[0]}`].map((path) => status(path)))).toEqual([404, 404]);
    expect((await restore(`boards/${id}`)).status).toBe(404);
    expect((await restore(`cards/${second}`)).status).toBe(200);
  });

  test('64: restoring a row alone whose parent is deleted is 409 deleted_with_parent', async () => {
    const { id, first } = await tree();
    await destroy(`boards/${id}`);
    const refused = await restore(`cards/${first}`);
    expect([refused.status, refused.body.code, refused.body.parent]).toEqual([409, 'deleted_with_parent', 'board']);
    expect((await stored('cards', first)).deleted_at).not.toBeNull();
  });

  test('65: a unique value may be used again after a deletion; restoring then is 409 and restores nothing', async () => {
    const slug = `s${Math.random()}`;
    const old = await make('boards', { title: 'old', slug });
    const card = await make('cards', { board_id: old, title: 'a' });
    await destroy(`boards/${old}`);
    await make('boards', { title: 'new', slug });
    const refused = await restore(`boards/${old}`);
    expect([refused.status, refused.body.code]).toEqual([409, 'conflict']);
    expect(refused.text).not.toMatch(/sqlite|duplicate key|constraint/i);
    expect((await stored('cards', card)).deleted_at).not.toBeNull();
  });

  test('55: a restore obeys If-Match when given and never requires it', async () => {
    const id = await make('boards', { title: 'tagged' });
    expect((await board.call('ann', 'DELETE', `boards/${id}`)).status).toBe(428);
    expect((await board.call('ann', 'DELETE', `boards/${id}`, undefined, { 'if-match': '"7"' })).status).toBe(412);
    expect((await board.call('ann', 'DELETE', `boards/${id}`, undefined, { 'if-match': '"1"' })).status).toBe(204);
    expect((await restore(`boards/${id}`, 'ann', { 'if-match': '"1"' })).status).toBe(412);
    const back = await restore(`boards/${id}`, 'ann', { 'if-match': '"2"' });
    expect([back.status, back.body.version, back.headers['etag']]).toEqual([200, 3, '"3"']);
    await destroy(`boards/${id}`);
    expect((await restore(`boards/${id}`)).status).toBe(200);
  });

  test("1: restoring another's row is the 404 of an unknown one and of one that is not deleted", async () => {
    const id = await make('boards', { title: 'mine' });
    const anonymised = ({ status: code, text }: { status: number; text: string }) => [code, text.replace(/"request_id":"[^"]*"/, '')];
    const isThere = anonymised(await restore(`boards/${id}`));
    await destroy(`boards/${id}`);
    for (const [person, key] of [
      ['bob', id],
      ['ann', UNKNOWN],
      ['ann', 'not-a-uuid'],
    ] as const)
      expect(anonymised(await restore(`boards/${key}`, person))).toEqual(isThere);
    expect(isThere[0]).toBe(404);
  });

  test('46, 47: onChange, audit and events report every row; stamps and versions move on all of them', async () => {
    const { id, first } = await tree();
    const stamps = (each: Record<string, unknown> | undefined) =>
      (each?.['updated_at'] as Date) > (each?.['created_at'] as Date) ? 'moved' : 'as created';
    await database.db.execute("update cards set created_at = '2020-01-01T00:00:00Z', updated_at = '2020-01-01T00:00:00Z'");
    for (const list of Object.values(told)) list.length = 0;
    clock.advance(5000);
    await destroy(`boards/${id}`);
    const seen = () => told.changes.map(({ operation, via, before, after }) => [operation, via, before === null, after === null]);
    expect(seen()[0]).toEqual(['destroy', 'single', false, true]);
    expect(seen().slice(1)).toEqual(Array.from({ length: 4 }, () => ['destroy', 'cascade', false, true]));
    expect(told.audited.map(({ action }) => action).toSorted()).toEqual([
      'board.deleted',
      'card.deleted',
      'card.deleted',
      'comment.deleted',
      'comment.deleted',
    ]);
    expect(told.published.map(({ type }) => type)).toEqual(['board.deleted']);
    const [row] = await database.db.query<Record<string, unknown>>(`select ${statementsOf(boards).list} from boards where id = $1`, [id]);
    expect(row).toMatchObject({ version: 2, updated_by: people.ann.id, deleted_by: people.ann.id, deleted_at: clock.now() });
    const [card] = await database.db.query<Record<string, unknown>>(`select ${statementsOf(cards).list} from cards where id = $1`, [first]);
    expect(card).toMatchObject({ version: 2, updated_by: people.ann.id, deleted_at: clock.now() });
    expect(stamps(card)).toBe('moved');
    for (const list of Object.values(told)) list.length = 0;
    const back = await restore(`boards/${id}`);
    expect(back.body).toMatchObject({ version: 3, deleted_by: null });
    expect(seen()[0]).toEqual(['restore', 'single', false, false]);
    expect(seen().slice(1)).toEqual(Array.from({ length: 4 }, () => ['restore', 'cascade', false, false]));
    expect(told.published.map(({ type }) => type)).toEqual(['board.restored']);
  });

  test('who may restore may list the deleted rows; for others the parameter does not exist', async () => {
    const { id, first } = await tree();
    await destroy(`boards/${id}`);
    const { body } = await board.call('ann', 'GET', 'cards?deleted=only');
    expect(body.items.map((row: { id: string }) => row.id)).toContain(first);
    expect(body.items.every((row: { deleted_at: string | null }) => row.deleted_at !== null)).toBe(true);
    expect(body.count).toBe(body.items.length);
    expect((await board.call('bob', 'GET', 'cards?deleted=only')).body.items).toEqual([]);
    const refused = await board.call('sue', 'GET', 'cards?deleted=only');
    const misspelt = await board.call('sue', 'GET', 'cards?delated=only');
    const said = (answer: typeof refused) =>
      answer.body.errors.map(({ code, message }: { code: string; message: string }) => [code, message]);
    expect([refused.status, said(refused)]).toEqual([422, said(misspelt)]);
    expect((await board.call('ann', 'GET', 'cards?deleted=all')).status).toBe(422);
    const paged = await board.call('ann', 'GET', 'cards?deleted=only&limit=1');
    expect((await board.call('ann', 'GET', `cards${String(paged.body.next).replace('deleted=only', '')}`)).body.code).toBe(
      'invalid_cursor',
    );
  });

  test('a cascade of more than 10,000 rows is 409 too_many_related and changes nothing', async () => {
    const id = await make('boards', { title: 'large' });
    const numbers =
      database.db.dialect === 'postgres'
        ? `select gen_random_uuid() as id from generate_series(1, ${limits.cascadeRows + 1})`
        : `with recursive n(i) as (select 1 union all select i + 1 from n where i <= ${limits.cascadeRows}) select printf('01890000-0000-7000-8000-%012d', i) as id from n`;
    await database.db.execute(
      `insert into cards (id, board_id, title) select n.id, b.id, 'many' from (${numbers}) n, boards b where b.id = $1`,
      [id],
    );
    const refused = await board.call('ann', 'DELETE', `boards/${id}`, undefined, any);
    expect([refused.status, refused.body.code, refused.body.rows_max]).toEqual([409, 'too_many_related', limits.cascadeRows]);
    expect((await stored('boards', id)).deleted_at).toBeNull();
    const one = await database.db.query<{ count: number }>(
      'select count(*) as count from cards where board_id = $1 and deleted_at is not null',
      [id],
    );
    expect(Number(one[0]?.count)).toBe(0);
    await database.db.execute('delete from cards where board_id = $1', [id]);
  });

  test('a row made while its parent is deleted goes with it or is refused: none stays below a deleted row', async () => {
    const ids = await Promise.all(Array.from({ length: 5 }, () => make('boards', { title: 'race' })));
    const add = (id: string) => board.call('ann', 'POST', 'cards', { board_id: id, title: 'late' });
    await Promise.all(ids.map((id) => Promise.all([add(id), add(id), add(id), destroy(`boards/${id}`), add(id), add(id), add(id)])));
    expect(await orphans()).toEqual([]);
  });

  test('so do rows below a parent in the URL, one by one, in bulk and from a file', async () => {
    const payload = `${JSON.stringify({ title: 'late' })}\n`;
    const headers = { 'x-user': 'ann', 'content-type': 'application/x-ndjson' };
    for (const add of [
      (id: string) => board.call('ann', 'POST', `boards/${id}/cards`, { title: 'late' }),
      (id: string) => board.call('ann', 'POST', `boards/${id}/cards/bulk`, { items: [{ title: 'late' }, { title: 'later' }] }),
      (id: string) => board.inject({ method: 'POST', url: `/v1/boards/${id}/cards/import`, headers, payload }),
    ]) {
      const ids = await Promise.all(Array.from({ length: 5 }, () => make('boards', { title: 'race' })));
      await Promise.all(ids.map((id) => Promise.all([destroy(`boards/${id}`), add(id), add(id), add(id), add(id)])));
      expect(await orphans()).toEqual([]);
    }
  });

  test('a row that is restored while its parent is deleted goes with it or is refused', async () => {
    for (let round = 0; round < 5; round += 1) {
      const trees = await Promise.all(Array.from({ length: 5 }, () => tree()));
      for (const { first } of trees) expect(await destroy(`cards/${first}`)).toBe(204);
      await Promise.all(trees.map(({ id, first }) => Promise.all([restore(`cards/${first}`), destroy(`boards/${id}`)])));
      expect(await orphans()).toEqual([]);
    }
  });

  test('purge removes what was deleted long ago, with what went with it, and nothing else', async () => {
    const [old, recent, kept] = [await tree(), await tree(), await tree()];
    await destroy(`boards/${old.id}`);
    clock.advance(91 * DAY_MS);
    await destroy(`boards/${recent.id}`);
    const models = softDeletedModels(board.app);
    expect([...models.keys()]).toEqual(['boards', 'cards', 'comments']);
    const before = new Date(clock.now().getTime() - 90 * DAY_MS);
    const report = await purgeDeleted(database.db, models.get('boards')!, before);
    expect(report.removed).toBeGreaterThan(0);
    expect(report.kept).toBe(0);
    const ids = async (table: string) => (await database.db.query<{ id: string }>(`select id from ${table}`)).map((row) => row.id);
    const [boardIds, cardIds, commentIds] = [await ids('boards'), await ids('cards'), await ids('comments')];
    expect([boardIds.includes(old.id), cardIds.includes(old.first), commentIds.includes(old.notes[0])]).toEqual([false, false, false]);
    for (const { id, first, notes } of [recent, kept])
      expect([boardIds.includes(id), cardIds.includes(first), commentIds.includes(notes[0])]).toEqual([true, true, true]);
    expect((await restore(`boards/${recent.id}`)).status).toBe(200);
  });

  test('a row that is restored while it is being purged stays', async () => {
    const { id, first } = await tree();
    await destroy(`boards/${id}`);
    clock.advance(91 * DAY_MS);
    const policy = softDeletedModels(board.app).get('boards')!;
    const gate = Promise.withResolvers<void>();
    const isRestored = Promise.withResolvers<void>();
    const restoring = database.db.transaction(async (tx) => {
      await tx.execute('update boards set deleted_at = null, deletion_id = null where id = $1', [id]);
      isRestored.resolve();
      await gate.promise;
    });
    await isRestored.promise;
    // The restore is committed after the purge has found the row, and before it removes it.
    const watched = new Proxy(database.db, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name, target);
        if (name === 'query')
          return async (...given: Parameters<typeof target.query>) => {
            const rows = await target.query(...given);
            gate.resolve();
            return rows;
          };
        return typeof member === 'function' ? (member as () => unknown).bind(target) : member;
      },
    });
    await purgeDeleted(watched, policy, clock.now());
    await restoring;
    expect((await stored('boards', id)).deleted_at).toBeNull();
    // What was deleted with it and not restored is still there to be restored.
    expect((await stored('cards', first)).deleted_at).not.toBeNull();
  });
});
