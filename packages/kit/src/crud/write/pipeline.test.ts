import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ann, mounted, requestBy, sue } from '../../../test/crud/mounted.ts';
import { createTable, migrate, migration, model, openDatabase, t, versioned } from '../../db/index.ts';
import { countQueries } from '../../db/engine/query-observer.ts';
import type { Database } from '../../db/engine/db.ts';
import { isStaff } from '../../permissions/index.ts';
import { resource, writableBy } from '../index.ts';
import type { AnyResource } from '../declare/resource.ts';
import type { CrudRequest } from '../policy/crud-request.ts';
import type { Intent, RowIntent, Verb } from './intent.ts';
import { Pipeline } from './pipeline.ts';

const notes = model('notes', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  title: t.text(40),
  price: t.int().dbDefault(0),
  state: t.enum(['open', 'paid']).dbDefault('open'),
  ...versioned(),
});
const tables = migration('0001_notes', [createTable('notes', notes.columns)]);

let db: Database;
let log: string[] = [];
beforeAll(async () => {
  db = await openDatabase('sqlite::memory:');
  await migrate(db, [{ name: 'notes', migrations: [tables] }] as never);
});
afterAll(() => db.close());
beforeEach(async () => {
  log = [];
  await db.query('delete from notes');
});

const audit = {
  record: async (_tx: unknown, entries: readonly { action: string }[]) =>
    void log.push(`audit ${entries.map(({ action }) => action).join()}`),
};
const said = <T>(word: string, result: T): T => {
  log.push(word);
  return result;
};
const plain = resource(notes, { owner: 'owner_id', version: 'version' });
const watched = resource(notes, {
  owner: 'owner_id',
  version: 'version',
  audit: true,
  state: 'state',
  transitions: { pay: { from: ['open'], to: 'paid', guard: () => said('guard', true) } },
  fields: { price: writableBy(isStaff) },
  validate: ({ input }) => said('validate', input.title === 'bad' ? [{ location: ['body', 'title'], code: 'bad', message: 'Bad.' }] : []),
  hooks: {
    create: ({ input }, next) => said('hook', next(input)),
    update: ({ input }, next) => said('hook', next(input)),
    destroy: (_context, next) => said('hook', next()),
  },
  onChange: ({ operation }) => void log.push(`onChange ${operation}`),
});

const requestOf = (user = ann, more: Partial<CrudRequest> = {}) => requestBy(user, { databases: { default: db }, ...more });
function run(declared: AnyResource, intent: Partial<Intent> & { readonly verb: Verb }, request = requestOf()) {
  const { policy } = mounted(declared);
  return new Pipeline(policy, { audit, events: null }).run(db, request, { via: 'single', rows: [], ...intent });
}
const row = (values: object, more: Partial<RowIntent> = {}): RowIntent => ({ values: values as never, sent: Object.keys(values), ...more });
const key = (declared: AnyResource, id: unknown) => ({ column: mounted(declared).policy.key, value: id });
const stored = async () => (await db.query<{ title: string }>('select title from notes order by title')).map(({ title }) => title);
const code = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'no error',
    (error: { code?: string }) => error.code,
  );
async function made(declared: AnyResource = plain): Promise<string> {
  const [found] = await run(declared, { verb: 'create', rows: [row({ title: 'a' })] });
  log = [];
  return (found as { id: string }).id;
}
const authorize = async (): Promise<void> => void log.push('authorize');

describe('the steps of a write', () => {
  test('are taken in one order: target, authorize, validate, write, listeners, records', async () => {
    const id = await made(watched);
    await run(watched, { verb: 'update', rows: [row({ title: 'b' }, { key: key(watched, id) })], asked: { authorize } });
    expect(log).toEqual(['authorize', 'validate', 'hook', 'onChange update', 'audit note.updated']);
    log = [];
    await run(watched, { verb: 'create', rows: [row({ title: 'c' })], asked: { authorize } });
    // Of a new row the permission is asked when the row is there.
    expect(log).toEqual(['validate', 'hook', 'authorize', 'onChange create', 'audit note.created']);
    log = [];
    await run(watched, {
      verb: 'transition',
      action: { name: 'pay', input: undefined },
      rows: [row({}, { key: key(watched, id) })],
      asked: { authorize },
    });
    expect(log).toEqual(['authorize', 'guard', 'onChange transition:pay', 'audit note.pay']);
    log = [];
    await run(watched, { verb: 'destroy', rows: [row({}, { key: key(watched, id) })], asked: { authorize } });
    expect(log).toEqual(['authorize', 'hook', 'onChange destroy', 'audit note.deleted']);
  });

  test('stop at the first refusal: 404, the permission, 412, 403 for a field, 422; nothing is written or announced', async () => {
    const id = await made(watched);
    const stale = { any: false, versions: ['7'] } as never;
    const denied = async (): Promise<never> => Promise.reject(Object.assign(new Error('no'), { code: 'denied' }));
    const update = (values: object, more: Partial<RowIntent> = {}, asked: Intent['asked'] = {}, user = ann) =>
      code(run(watched, { verb: 'update', rows: [row(values, { key: key(watched, id), ...more })], asked }, requestOf(user)));
    const everything = { title: 'bad', price: 1 };
    expect(await update(everything, { ifMatch: stale }, { authorize: denied }, { ...ann, id: sue.id })).toBe('not_found');
    expect(await update(everything, { ifMatch: stale }, { authorize: denied })).toBe('denied');
    expect(await update(everything, { ifMatch: stale })).toBe('precondition_failed');
    expect(await update(everything)).toBe('permission_denied');
    expect(await update({ title: 'bad' })).toBe('validation_error');
    expect(log).toEqual(['validate']);
    expect(await stored()).toEqual(['a']);
  });

  test('are undone together: what a listener throws leaves nothing', async () => {
    const failing = resource(notes, { owner: 'owner_id', onChange: () => Promise.reject(new Error('no')) });
    await expect(run(failing, { verb: 'create', rows: [row({ title: 'x' })] })).rejects.toThrow('no');
    expect(await stored()).toEqual([]);
  });
});

describe('one row that nothing else needs', () => {
  test.each(['create', 'update', 'destroy'] as const)('%s is one statement', async (verb) => {
    const id = verb === 'create' ? undefined : await made();
    const rows = [row(verb === 'destroy' ? {} : { title: 'b' }, id === undefined ? {} : { key: key(plain, id) })];
    const declared = resource(notes, { owner: 'owner_id', version: 'version', audit: false });
    const { count } = await countQueries(() => run(declared, { verb, rows }));
    expect(count).toBe(1);
  });

  test('of another owner is 404, and stays', async () => {
    const id = await made();
    const declared = resource(notes, { owner: 'owner_id', audit: false });
    for (const verb of ['update', 'destroy'] as const)
      expect(
        await code(run(declared, { verb, rows: [row({ title: 'b' }, { key: key(declared, id) })] }, requestOf({ ...ann, id: sue.id }))),
      ).toBe('not_found');
    expect(await stored()).toEqual(['a']);
  });
});

describe('several rows', () => {
  test('are all written or none, and are recorded once', async () => {
    await run(watched, {
      verb: 'create',
      via: 'bulk',
      rows: [row({ title: 'a' }, { at: ['body', 'items', 0] }), row({ title: 'b' }, { at: ['body', 'items', 1] })],
    });
    expect(log.filter((word) => word.startsWith('audit'))).toEqual(['audit note.created,note.created']);
    const refused = run(watched, {
      verb: 'create',
      via: 'bulk',
      rows: [row({ title: 'c' }, { at: ['body', 'items', 0] }), row({ title: 'bad' }, { at: ['body', 'items', 1] })],
    });
    await expect(refused).rejects.toMatchObject({ errors: [{ code: 'bad' }] });
    expect(await stored()).toEqual(['a', 'b']);
  });

  test('that are not there are named by their places', async () => {
    const id = await made();
    const rows = [
      row({ title: 'b' }, { key: key(plain, id), at: ['body', 'items', 0] }),
      row({ title: 'b' }, { key: key(plain, ann.id), at: ['body', 'items', 1] }),
    ];
    await expect(run(plain, { verb: 'update', via: 'bulk', rows })).rejects.toMatchObject({
      code: 'not_found',
      errors: [{ location: ['body', 'items', 1] }],
    });
    expect(await stored()).toEqual(['a']);
  });
});

test('key, owner and version are not changed by what a client or a hook sends', async () => {
  const declared = resource(notes, {
    owner: 'owner_id',
    version: 'version',
    hooks: { update: ({ input }, next) => next({ ...input, owner_id: sue.id, version: 99, id: sue.id } as never) },
  });
  const id = await made();
  const [after] = await run(declared, { verb: 'update', rows: [row({ title: 'b' }, { key: key(declared, id) })] });
  expect(after).toMatchObject({ id, owner_id: ann.id, version: 2, title: 'b' });
});

test('an unknown transition or action is an error of the program, with the known names', async () => {
  await expect(run(watched, { verb: 'transition', action: { name: 'nope', input: undefined } })).rejects.toThrow(
    'has no transition "nope". Known: pay',
  );
  await expect(run(watched, { verb: 'action', action: { name: 'nope', input: undefined } })).rejects.toThrow('nope');
});
