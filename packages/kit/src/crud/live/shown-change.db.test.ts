import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { Follower } from '../../../test/crud/live.ts';
import { byName, type Person } from '../../../test/crud/shop.ts';
import { createTable, migration, model, t } from '../../db/index.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import { isAuthenticated, Permission } from '../../permissions/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { testApp, type TestApp } from '../../testing/test-app.ts';
import { CrudController, resource, visibleTo } from '../index.ts';

const PATIENCE = { timeout: 30_000, interval: 20 };

const posts = model('posts', {
  id: t.int().pk(),
  title: t.text(40),
  grade: t.int().dbDefault(1),
  salary: t.int(),
  extra: t.json().nullable(),
});
const ofHighGrade = new Permission({
  name: 'ofHighGrade',
  requires: ['grade'],
  evaluate: ({ user }, row) => user?.is_staff === true || (row === undefined ? 'unknown' : (row as { grade: number }).grade >= 5),
});
class Posts extends CrudController(
  resource(posts, {
    unscoped: true,
    changes: 'trigger',
    hidden: ['grade'],
    fields: { salary: visibleTo(ofHighGrade), extra: visibleTo(ofHighGrade) },
    computed: {
      rank: {
        requires: ['grade'],
        response: jsonSchema<string>({ type: 'string' }),
        value: ({ grade }) => (grade > 3 ? 'senior' : 'junior'),
      },
    },
  }),
  { permission: isAuthenticated, live: true },
) {}

describeDatabases('what a list is told of a row whose fields depend on the row', (database) => {
  let kit: TestApp;
  let url: string;
  const followers: Follower[] = [];
  beforeAll(async () => {
    kit = await testApp({
      database: database.db,
      authenticators: [byName],
      modules: [{ name: 'posts', models: [posts], migrations: [migration('0001_posts', [createTable('posts', posts.columns)])] }],
      mount: { '/v1': { '/posts': Posts } },
    });
    url = `${await kit.listen()}/v1/posts`;
  });
  afterEach(async () => {
    for (const each of followers.splice(0)) await each.disconnect();
  });
  afterAll(() => kit?.close());

  async function follow(person: Person): Promise<Follower> {
    const follower = await new Follower(person).connect(url);
    followers.push(follower);
    await vi.waitFor(() => expect([follower.batches, follower.ended]).toEqual([1, undefined]), PATIENCE);
    return follower;
  }

  test('nothing of a change that its item does not show, and each one that it shows', async () => {
    const { db } = database;
    const insert = (id: number) => db.query('insert into posts (id, title, grade, salary) values ($1, $2, 1, 10)', [id, `post ${id}`]);
    await insert(1);
    const [ann, sue] = [await follow('ann'), await follow('sue')];
    const first = { id: 1, title: 'post 1', rank: 'junior' };
    expect(ann.rows.get(1 as never)).toEqual(first);
    let marker = 1;
    const told = async (change: string): Promise<unknown[][]> => {
      const before = [ann, sue].map(({ log }) => log.length);
      await db.query(`update posts set ${change} where id = 1`);
      marker += 1;
      await insert(marker);
      for (const each of [ann, sue]) await vi.waitFor(() => expect(each.rows.has(marker as never)).toBe(true), PATIENCE);
      return [ann, sue].map(({ log }, place) =>
        log.slice(before[place]).flatMap(({ event, data }) => (data.key === 1 ? [event === 'upsert' ? data.item : event] : [])),
      );
    };
    const whole = { ...first, salary: 20, extra: null };
    expect(await told('salary = 20')).toEqual([[], [whole]]);
    expect(await told('grade = 2')).toEqual([[], []]);
    expect(await told(`extra = '{"a":1}'`)).toEqual([[], [{ ...whole, extra: { a: 1 } }]]);
    expect(await told('grade = 4')).toEqual([[{ ...first, rank: 'senior' }], [{ ...whole, rank: 'senior', extra: { a: 1 } }]]);
    const seen = { ...whole, rank: 'senior', extra: { a: 1 } };
    expect(await told('grade = 5')).toEqual([[seen], []]);
    expect(await told(`extra = '{"a":2}'`)).toEqual([[{ ...seen, extra: { a: 2 } }], [{ ...seen, extra: { a: 2 } }]]);
    expect(await told('salary = 30, extra = null')).toEqual([
      [{ ...seen, salary: 30, extra: null }],
      [{ ...seen, salary: 30, extra: null }],
    ]);
    expect(await told('grade = 1')).toEqual([[first], [{ ...whole, salary: 30 }]]);
  });
});
