import { afterAll, beforeAll, expect, test } from 'vitest';
import { startShop, type ShopApp } from '../../test/crud/shop.ts';
import { createTable, migration, model, t, versioned } from '../db/index.ts';
import { coreErrors } from '../errors/core-errors.ts';
import { route } from '../http/declare/route.ts';
import { jsonSchema } from '../http/declare/json-schema.ts';
import { isAuthenticated } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import { CrudController, many, one, resource } from './index.ts';

/** Projects have tasks, whose keys are numbers that clients give; steps refer to tasks. */
const projects = model('projects', { id: t.uuidv7().pk(), name: t.text(40) });
const taskColumns = {
  id: t.int().pk(),
  project_id: t.ref('projects'),
  name: t.text(40),
  code: t.text(40).nullable().unique(),
  status: t.enum(['open', 'done']).dbDefault('open'),
  ...versioned(),
};
const tasks = model('tasks', { ...taskColumns, project_id: t.ref(() => projects) });
const stepColumns = { id: t.uuidv7().pk(), task_id: t.ref<number>('tasks', { type: t.int() }) };
const steps = model('steps', stepColumns);

const projectResource = resource(projects, {
  unscoped: true,
  relations: { tasks: many(() => tasks, 'project_id', { limit: 100 }) },
  nested: { tasks: { input: ['id', 'name'] } },
});
const taskResource = resource(tasks, {
  unscoped: true,
  version: 'version',
  relations: { project: one(() => projects, 'project_id') },
  state: 'status',
  transitions: { finish: { from: ['open'], to: 'done' } },
});
const Name = jsonSchema<{ name: string }>({ type: 'object', properties: { name: { type: 'string' } }, required: ['name'] });
const Count = jsonSchema<{ count: number }>({ type: 'object', properties: { count: { type: 'integer' } }, required: ['count'] });
const bulk = { create: true, update: true, destroy: true } as const;
class Projects extends CrudController(projectResource, { permission: isAuthenticated, expand: ['tasks'] }) {}
class Tasks extends CrudController(taskResource, { permission: isAuthenticated, bulk }) {}
class Strict extends CrudController(taskResource, { permission: isAuthenticated, etag: 'required' }) {}
class Below extends CrudController(taskResource, { permission: isAuthenticated, parent: { relation: 'project' } }) {
  label = route.get('/:id/label', { params: this.keyParams, permission: isAuthenticated, response: Name }, async (context) => ({
    name: (await this.find(context, context.params.id)).name,
  }));
  count = route.get('/count', { permission: isAuthenticated, response: Count }, async (context) => ({
    count: (await this.rows(context)).length,
  }));
}
class Steps extends CrudController(resource(steps, { unscoped: true }), { permission: isAuthenticated, bulk }) {}
class Partly extends CrudController(taskResource, { permission: isAuthenticated, bulk: { ...bulk, mode: 'partial' } }) {}
const tables = [createTable('projects', projects.columns), createTable('tasks', taskColumns), createTable('steps', stepColumns)];
const module = { name: 'work', models: [projects, tasks, steps], migrations: [migration('0001_initial', tables)] };

describeDatabases('tasks of projects', (database) => {
  let shop: ShopApp;
  let project: string;
  let last = 0;
  beforeAll(async () => {
    const mount = {
      '/v1': {
        '/projects': Projects,
        '/tasks': Tasks,
        '/partly': Partly,
        '/strict': Strict,
        '/projects/:project_id/tasks': Below,
        '/steps': Steps,
      },
    };
    shop = await startShop({ database: database.db, mount, modules: [module] });
    project = (await post('projects', { name: 'one' })).body.id;
  });
  afterAll(() => shop.close());
  const post = (path: string, body?: object, headers?: Record<string, string>) => shop.call('ann', 'POST', path, body, headers);
  const make = async (more: object = {}): Promise<number> => {
    last += 1;
    return (await post('tasks', { id: last, project_id: project, name: `task ${last}`, ...more })).body.id;
  };

  test("below another parent a row is 404: its transitions, and routes of the controller's own that look for it", async () => {
    const id = await make();
    const other = (await post('projects', { name: 'other' })).body.id as string;
    const unknown = '01890000-0000-7000-8000-000000000000';
    for (const path of ['', '/transitions', '/label']) {
      const statuses = [];
      for (const parent of [project, other, unknown, 'malformed'])
        statuses.push((await shop.call('ann', 'GET', `projects/${parent}/tasks/${id}${path}`)).status);
      expect([path, statuses]).toEqual([path, [200, 404, 404, 404]]);
    }
  });

  test("the rows that a route of the controller's own asks for are those of the parent; 404 without it", async () => {
    const other = (await post('projects', { name: 'other' })).body.id as string;
    for (const parent of [project, other, other]) await make({ project_id: parent });
    const count = (parent: string) => shop.call('ann', 'GET', `projects/${parent}/tasks/count`);
    expect((await count(other)).body).toEqual({ count: 2 });
    for (const parent of ['01890000-0000-7000-8000-000000000000', 'malformed']) expect((await count(parent)).status).toBe(404);
  });

  test('16: a cursor belongs to one controller and one parent: elsewhere it is 422, and its count is shown nowhere else', async () => {
    const parents = [];
    for (const name of ['first', 'second']) {
      const { id } = (await post('projects', { name })).body as { id: string };
      parents.push(id);
      for (let count = 0; count < 3; count += 1) await make({ project_id: id });
    }
    const [first, second] = parents as [string, string];
    const get = (path: string) => shop.call('ann', 'GET', path);
    const { next } = (await get(`projects/${first}/tasks?limit=1`)).body as { next: string };
    for (const path of [`projects/${second}/tasks`, 'tasks', 'partly']) {
      const { status, body } = await get(`${path}${next}`);
      expect([path, status, body.code]).toEqual([path, 422, 'invalid_cursor']);
    }
    for (const parent of [first, first.toUpperCase()])
      expect((await get(`projects/${parent}/tasks${next}`)).body).toMatchObject({ count: 3, items: [{ project_id: first }] });
    expect((await get(`partly${(await get('tasks?limit=1')).body.next}`)).body.code).toBe('invalid_cursor');
  });

  test('a parameter that a transition or deletion refuses is 422, also without the tag that is required; then 428, then 404', async () => {
    const id = await make();
    expect((await post(`strict/${id}/finish?fields=nope`)).status).toBe(422);
    expect((await post(`strict/${id}/finish`)).status).toBe(428);
    expect((await post('strict/2147483647/finish')).status).toBe(428);
    expect((await post('strict/2147483647/finish', undefined, { 'if-match': '*' })).status).toBe(404);
    expect((await post('strict/malformed/finish')).status).toBe(404);
    expect((await shop.call('ann', 'DELETE', 'strict/malformed')).status).toBe(404);
  });

  test('70: a row that is named twice is a duplicate however its number is written, in bulk and in nested writes', async () => {
    const id = await make();
    const items = [
      { id, name: 'a' },
      { id: `${id}`, name: 'b' },
    ];
    const places = (answer: { status: number; body: { errors: { code: string; location: unknown }[] } }) => [
      answer.status,
      answer.body.errors.map(({ code, location }) => [code, location]),
    ];
    const twice = (...path: string[]) => [0, 1].map((index) => ['duplicate', ['body', ...path, index, 'id']]);
    expect(places(await post('tasks/bulk-update', { items }))).toEqual([422, twice('items')]);
    expect((await post('tasks/bulk-delete', { ids: [id, `${id}`] })).status).toBe(422);
    expect(places(await shop.call('ann', 'PATCH', `projects/${project}`, { tasks: items }))).toEqual([422, twice('tasks')]);
    for (const key of [`0${id}`, `${id}.0`, `0x${id.toString(16)}`, ` ${id}`, '', '1e0'])
      expect([key, places(await shop.call('ann', 'PATCH', `projects/${project}`, { tasks: [{ id: key, name: 'x' }] }))]).toEqual([
        key,
        [422, [['unknown_reference', ['body', 'tasks', 0, 'id']]]],
      ]);
    expect((await shop.call('ann', 'GET', `tasks/${id}`)).body).toMatchObject({ name: `task ${id}`, version: 1 });
  });

  test('faults that the database finds in a bulk change or deletion have their place, and nothing is written', async () => {
    await make({ code: 'taken' });
    const [first, second] = [await make(), await make()];
    const taken = await post('tasks/bulk-update', { ids: [first, second], changes: { code: 'taken' } });
    expect([taken.status, taken.body.errors]).toMatchObject([409, [{ location: ['body', 'changes', 'code'], code: 'not_unique' }]]);
    await post('steps', { task_id: second });
    for (const headers of [undefined, { 'idempotency-key': 'bulk-delete-of-a-referenced-task' }]) {
      const refused = await post('tasks/bulk-delete', { ids: [first, second] }, headers);
      expect([refused.status, refused.body.code, refused.body.errors]).toMatchObject([
        409,
        'still_referenced',
        [{ location: ['body', 'ids', 1], code: 'still_referenced' }],
      ]);
    }
    for (const id of [first, second]) expect((await shop.call('ann', 'GET', `tasks/${id}`)).body).toMatchObject({ code: null, version: 1 });
  });

  test('a key in a bulk body is written as in an address, or as a JSON number: anything else names no row', async () => {
    const id = await make();
    const [atItems, atIds] = [
      ['body', 'items', 0],
      ['body', 'ids', 0],
    ];
    for (const key of [`0${id}`, `+${id}`, `${id}.0`, `${id}e0`, `%20${id}`, '-0'])
      expect([key, (await shop.call('ann', 'GET', `tasks/${key}`)).status]).toEqual([key, 404]);
    for (const key of [`0${id}`, `+${id}`, `${id}.0`, `${id}e0`, ` ${id}`, '', '-0', id + 0.5, 2 ** 40]) {
      for (const [path, body, location] of [
        ['tasks/bulk-update', { items: [{ id: key, name: 'x' }] }, atItems],
        ['tasks/bulk-update', { ids: [key], changes: { name: 'x' } }, atIds],
        ['tasks/bulk-delete', { ids: [key] }, atIds],
      ] as const) {
        const refused = await post(path, body);
        expect([key, path, refused.status, refused.body.errors]).toMatchObject([key, path, 404, [{ location, code: 'not_found' }]]);
        const { status, results } = (await post(path.replace('tasks', 'partly'), body)).body;
        expect([key, status, results]).toMatchObject([key, undefined, [{ status: 404 }]]);
      }
    }
    for (const key of [id, `${id}`]) expect((await post('tasks/bulk-update', { ids: [key], changes: { name: 'y' } })).status).toBe(200);
    for (const key of [2 ** 53, true, null, [id]])
      expect((await post('tasks/bulk-delete', { ids: [key] })).body.errors).toMatchObject([{ location: atIds, code: 'invalid_type' }]);
    // The keys of steps are text.
    const step = await post('steps', { task_id: id });
    for (const key of [7, step.body.id.length])
      expect((await post('steps/bulk-delete', { ids: [key] })).body.errors).toMatchObject([{ location: atIds, code: 'invalid_type' }]);
    expect((await post('steps/bulk-delete', { ids: [step.body.id] })).status).toBe(204);
  });

  test('a taken value that several rows share is at its place in changes, in partial mode, too', async () => {
    await make({ code: 'held' });
    const [first, second] = [await make(), await make()];
    const answer = await post('partly/bulk-update', { ids: [first, 999_999, second], changes: { code: 'held' } });
    const held = { status: 409, code: 'conflict', errors: [{ location: ['body', 'changes', 'code'], code: 'not_unique' }] };
    expect([answer.status, answer.body.results]).toMatchObject([
      207,
      [held, { status: 404, errors: [{ location: ['body', 'ids', 1], code: 'not_found' }] }, held],
    ]);
    const each = await post('partly/bulk-update', { items: [{ id: first, code: 'held' }] });
    expect(each.body.results).toMatchObject([{ errors: [{ location: ['body', 'items', 0, 'code'] }] }]);
    const reference = await post('partly/bulk-update', { ids: [first], changes: { project_id: '01890000-0000-7000-8000-000000000000' } });
    expect(reference.body.results).toMatchObject([{ status: 422, errors: [{ code: 'unknown_reference' }] }]);
    expect(reference.body.results[0].errors[0].location.slice(0, 2)).toEqual(['body', 'changes']);
  });
});

describeDatabases('tasks with a hook', (database) => {
  let shop: ShopApp;
  const hooked = resource(tasks, {
    unscoped: true,
    hooks: {
      update: async ({ input, before }, next) => {
        if (before.name === 'locked') throw coreErrors.conflict({ detail: 'It is locked.' });
        return next(input);
      },
    },
  });
  class Hooked extends CrudController(hooked, { permission: isAuthenticated, bulk }) {}
  beforeAll(async () => {
    shop = await startShop({ database: database.db, mount: { '/v1': { '/projects': Projects, '/tasks': Hooked } }, modules: [module] });
  });
  afterAll(() => shop.close());

  test('a taken value of { ids, changes } is at its place in changes; what a hook refuses is at the row', async () => {
    const post = (path: string, body: object) => shop.call('ann', 'POST', path, body);
    const project_id = (await post('projects', { name: 'one' })).body.id;
    for (const [id, name] of ['held', 'free', 'locked'].entries()) await post('tasks', { id, project_id, name, code: name });
    const taken = await post('tasks/bulk-update', { ids: [1], changes: { code: 'held' } });
    expect([taken.status, taken.body.errors]).toMatchObject([409, [{ location: ['body', 'changes', 'code'], code: 'not_unique' }]]);
    const each = await post('tasks/bulk-update', { items: [{ id: 1, code: 'held' }] });
    expect([each.status, each.body.errors]).toMatchObject([409, [{ location: ['body', 'items', 0, 'code'], code: 'not_unique' }]]);
    const locked = await post('tasks/bulk-update', { ids: [1, 2], changes: { code: null } });
    expect([locked.status, locked.body.errors]).toMatchObject([409, [{ location: ['body', 'ids', 1], code: 'conflict' }]]);
  });
});
