import { describe, expect, test } from 'vitest';
import { createApp } from '../app/create-app.ts';
import { checkDescriptions } from '../app/checks.ts';
import { StartUpError } from '../app/start-up-error.ts';
import type { Mountable } from '../http/controller.ts';
import { model, softDelete, softDeleteUnique, t, timestamps, versioned } from '../db/index.ts';
import { isAuthenticated, isOwner, isStaff, Permission } from '../permissions/index.ts';
import { jsonSchema } from '../http/json-schema.ts';
import { CrudController, filter, many, one, resource, visibleTo } from './index.ts';

const users = model('users', { id: t.uuidv7().pk(), name: t.text(40) });
const notes = model('notes', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  open_id: t.uuid(),
  maybe_id: t.uuid().nullable().readOnly(),
  title: t.text(100),
  body: t.text(),
  number: t.int().dbDefault(0),
  meta: t.json().nullable(),
  author_id: t.ref(() => users).nullable(),
  state: t.enum(['draft', 'done']).dbDefault('draft'),
  hidden__name: t.text(10).nullable(),
  ...timestamps(),
  ...versioned(),
});
const links = model('links', { a: t.uuid(), b: t.uuid(), slug: t.text(40), code: t.text(40).unique() }, { primaryKey: ['a', 'b'] });
const people = resource(users, { unscoped: true });
const base = { owner: 'owner_id' } as const;
const permission = isAuthenticated;

function faults(mount: Record<string, unknown>, options: object = {}): string[] {
  try {
    createApp({
      database: 'sqlite::memory:',
      log: { level: 'silent' },
      docs: false,
      mount: { '/v1': mount as Record<string, Mountable> },
      resources: [people],
      ...options,
    });
    return [];
  } catch (error) {
    if (!(error instanceof StartUpError)) throw error;
    return error.faults.map(({ id, message, hint }) => `${id} ${message}${hint === undefined ? '' : ` ${hint}`}`);
  }
}

const crud = (options: object, policy: object = base) => {
  class NoteController extends CrudController(notes, { permission, ...policy, ...options } as never) {}
  return NoteController;
};

describe('start-up checks of resources', () => {
  test('a good declaration starts', () => {
    expect(faults({ '/notes': crud({}) })).toEqual([]);
  });

  test.each<[string, object, object | undefined, RegExp]>([
    ['E012', { filters: { titel: ['eq'] } }, undefined, /the filter "titel" names no column .* Did you mean "title"\?/],
    ['E012', { filters: { number: ['contains'] } }, undefined, /cannot have the operator "contains"/],
    ['E012', { filters: { hidden__name: ['eq'] } }, undefined, /has "__" in its name/],
    ['E012', { ordering: { by: ['titel'] } }, undefined, /ordering.by names no column "titel". Did you mean "title"\?/],
    ['E012', { ordering: { by: ['body'] } }, undefined, /a text of more than 200 characters/],
    ['E012', { ordering: { by: ['meta'] } }, undefined, /json columns have no order/],
    ['E012', { search: ['number'] }, undefined, /which is not text/],
    [
      'E012',
      { expand: ['autor'] },
      { ...base, relations: { author: one(() => users, 'author_id') } },
      /expand names no relation "autor". Did you mean "author"\?/,
    ],
    ['E012', { operations: { remove: false } }, undefined, /operations names no operation "remove"/],
    ['E012', { page: { count: 'estimate' } }, undefined, /counts everybody's rows/],
    ['E012', { page: { default: 50, max: 20 } }, undefined, /page.default is 50, more than page.max 20/],
    ['E012', {}, { owner: 'owner_id', hidden: ['titel'] }, /hidden names no column "titel"/],
    ['E013', {}, {}, /does not say which rows a caller sees/],
    ['E013', {}, { owner: 'open_id' }, /the owner column "open_id" is accepted from clients/],
    ['E013', {}, { owner: 'maybe_id' }, /the owner column "maybe_id" may be null/],
    ['E013', {}, { tenant: 'owner_id' }, /has a tenant, and the app cannot tell whose/],
    ['E013', { etag: 'required' }, undefined, /etag is required, and the resource has no version/],
    ['E013', {}, { ...base, version: 'number' }, /does not count updates/],
    ['E013', {}, { unscoped: true, events: true }, /announces events to nobody/],
    ['E015', {}, { ...base, input: ['title', 'open_id'] }, /nothing sets the required column "body"/],
    ['E016', { search: ['title'] }, { ...base, fields: { title: visibleTo(isStaff) } }, /search looks into "title"/],
    [
      'E016',
      { ordering: { by: ['title'], default: ['title'] } },
      { ...base, fields: { title: visibleTo(isStaff) } },
      /ordering.default has "title"/,
    ],
    ['E016', { filters: { title: ['eq'] } }, { ...base, fields: { title: visibleTo(isOwner()) } }, /whose visibility depends on the row/],
    ['E016', {}, { ...base, fields: { id: visibleTo(isStaff) } }, /the key "id" is hidden/],
    ['E017', {}, { ...base, relations: { items: many(() => links, 'a', { limit: 5 }) } }, /leads to "links", which has no resource/],
    [
      'E018',
      { filters: { limit: filter(jsonSchema({ type: 'integer' }), () => ({})) } },
      undefined,
      /takes the name of a parameter of lists/,
    ],
    ['E018', {}, { ...base, state: 'state', transitions: { list: { from: ['draft'], to: 'done' } } }, /takes the name of an operation/],
    ['E018', {}, { ...base, state: 'state', transitions: { end: { from: ['draft'], to: 'gone' } } }, /has the state "gone"/],
    ['E018', {}, { ...base, relations: { title: one(() => users, 'author_id') } }, /has the name of a column/],
    [
      'E022',
      {},
      {
        ...base,
        fields: Object.fromEntries(
          ['title', 'body', 'number', 'meta', 'author_id', 'open_id', 'state'].map((name) => [
            name,
            visibleTo(new Permission({ name, kind: 'x', evaluate: () => true })),
          ]),
        ),
      },
      /7 distinct permissions/,
    ],
  ])('%s %j %j', (id, options, policy, sentence) => {
    const found = faults({ '/notes': crud(options, policy) });
    // Without its owner a note has a required column that nothing sets, too.
    const [fault, ...others] = id === 'E015' ? found : found.filter((each) => !each.startsWith('E015'));
    expect(others.filter((each) => !each.startsWith('E015'))).toEqual([]);
    expect(fault).toMatch(sentence);
    expect(fault?.split(' ')[0]).toBe(id);
    expect(id in checkDescriptions).toBe(true);
  });

  test('E014: a key of several columns needs a unique lookup', () => {
    class Links extends CrudController(links, { permission, unscoped: true }) {}
    class BySlug extends CrudController(links, { permission, unscoped: true, lookup: 'slug' }) {}
    class ByCode extends CrudController(links, { permission, unscoped: true, lookup: 'code' }) {}
    expect(faults({ '/links': Links })[0]).toMatch(/E014 .*the key of "links" has 2 columns/);
    expect(faults({ '/links': BySlug })[0]).toMatch(/E014 .*"slug" is not unique/);
    expect(faults({ '/links': ByCode })).toEqual([]);
  });

  test('84: a relation to a model without a resource stops the start', () => {
    const found = faults({ '/notes': crud({}, { ...base, relations: { items: many(() => links, 'a', { limit: 5 }) } }) });
    expect(found).toContainEqual(expect.stringMatching(/^E017 .*leads to "links", which has no resource/));
  });

  test('E017: a model has one resource per app', () => {
    class One extends CrudController(notes, { permission, owner: 'owner_id' }) {}
    class Two extends CrudController(notes, { permission, owner: 'owner_id' }) {}
    expect(faults({ '/one': One, '/two': Two })).toEqual([expect.stringMatching(/^E017 The model "notes" has two resources/)]);
  });

  test('E020: soft deletion needs its columns, a cascade that has them too, and unique values that become free', () => {
    const leaves = model('leaves', { id: t.uuidv7().pk(), tree_id: t.uuid() });
    const columns = { id: t.uuidv7().pk(), slug: t.text(20), ...softDelete() };
    const trees = model('trees', columns, { indexes: [softDeleteUnique('slug')] });
    const taken = model('trees', { ...columns, slug: t.text(20).unique() });
    const start = (source: typeof trees, options: object) => {
      class Trees extends CrudController(source, { permission, unscoped: true, ...options } as never) {}
      return faults({ '/trees': Trees }, { resources: [people, resource(leaves, { unscoped: true })] });
    };
    const relations = { leaves: many(() => leaves, 'tree_id', { limit: 5 }) };
    expect(start(trees, { restore: true })).toEqual([]);
    expect(start(taken, {})).toEqual([expect.stringMatching(/^E020 .*"slug" stays taken by deleted rows.*softDeleteUnique\('slug'\)/)]);
    expect(start(taken, { softDelete: false })).toEqual([]);
    expect(start(trees, { softDelete: { cascade: ['leaves'] }, relations })).toEqual([
      expect.stringMatching(/^E020 .*leads to "leaves", which does not delete softly/),
    ]);
    expect(start(trees, { softDelete: { cascade: ['leavess'] }, relations })).toEqual([
      expect.stringMatching(/^E020 .*Did you mean "leaves"/),
    ]);
    expect(faults({ '/notes': crud({ restore: true }) })).toEqual([expect.stringMatching(/^E020 .*offers restore/)]);
    expect(faults({ '/notes': crud({}, { ...base, softDelete: true }) })).toEqual([expect.stringMatching(/^E020 .*no deleted_at/)]);
  });

  test('E012, E015: nested writes name a relation and columns that may be sent, and delete nothing that could not be read', () => {
    const leaves = model('leaves', {
      id: t.uuidv7().pk(),
      tree_id: t.uuid(),
      name: t.text(10),
      weight: t.int(),
      made_by: t.uuid().readOnly(),
    });
    const trees = model('trees', { id: t.uuidv7().pk(), name: t.text(20) });
    const start = (nested: object, hooks: object = { create: () => undefined }) => {
      const relations = { leaves: many(() => leaves, 'tree_id', { limit: 20 }) };
      class Trees extends CrudController(trees, { permission, unscoped: true, relations, nested } as never) {}
      return faults({ '/trees': Trees }, { resources: [people, resource(leaves, { unscoped: true, hooks } as never)] });
    };
    expect(start({ leaves: { input: ['name', 'weight'], missing: 'delete', max: 20 } })).toEqual([]);
    expect(start({ leavs: { input: ['name'] } })).toEqual([
      expect.stringMatching(/^E012 .*names no to-many relation. Did you mean "leaves"/),
    ]);
    for (const column of ['made_by', 'tree_id', 'nam'])
      expect(start({ leaves: { input: [column] } })).toEqual([expect.stringMatching(/^E012 .*which a client may not send/)]);
    expect(start({ leaves: { input: ['name', 'weight'], missing: 'delete', max: 21 } })).toEqual([
      expect.stringMatching(/^E012 .*deletes what is missing among 21, and the relation shows 20/),
    ]);
    expect(start({ leaves: { input: ['name'] } }, {}).map((fault) => fault.slice(0, 4))).toContain('E015');
  });

  test('every fault of an app comes at once', () => {
    const found = faults({ '/notes': crud({ filters: { titel: ['eq'] }, ordering: { by: ['x'] }, search: ['y'] }, { hidden: ['z'] }) });
    expect(found.map((fault) => fault.slice(0, 4)).sort()).toEqual(['E012', 'E012', 'E012', 'E012', 'E013', 'E015']);
  });
});

describe('85: what types can say does not compile', () => {
  test('misspelt names, operators and states', () => {
    const wrong = () => {
      // @ts-expect-error -- no permission
      CrudController(notes, { owner: 'owner_id' });
      // @ts-expect-error -- a misspelt filter
      CrudController(notes, { permission, owner: 'owner_id', filters: { titel: ['eq'] } });
      // @ts-expect-error -- an unknown operator
      CrudController(notes, { permission, owner: 'owner_id', filters: { title: ['like'] } });
      // @ts-expect-error -- an operator that does not fit
      CrudController(notes, { permission, owner: 'owner_id', filters: { number: ['contains'] } });
      // @ts-expect-error -- no such owner column
      resource(notes, { owner: 'user_id' });
      // @ts-expect-error -- an unknown state
      resource(notes, { owner: 'owner_id', state: 'state', transitions: { end: { from: ['draft'], to: 'gone' } } });
      // @ts-expect-error -- a column the child does not have
      many(() => links, 'order_id');
      // @ts-expect-error -- rows that name no value of the enum
      resource(notes, { rows: () => ({ state: 'gone' }) });
      class ReadOnly extends CrudController(notes, { permission, owner: 'owner_id', operations: { create: false } }) {
        // @ts-expect-error -- there is nothing to override
        override create = this.wrap('create', {});
      }
      return ReadOnly;
    };
    expect(wrong).toBeTypeOf('function');
  });
});
