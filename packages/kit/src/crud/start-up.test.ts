import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createApp } from '../app/assemble/create-app.ts';
import { checkDescriptions } from '../app/check/checks.ts';
import { StartUpError } from '../app/check/start-up-error.ts';
import { Controller, type Mountable } from '../http/compile/controller.ts';
import { model, softDelete, softDeleteUnique, t, timestamps, versioned } from '../db/index.ts';
import { allowAny, isAuthenticated, isOwner, isReadOnly, isStaff, Permission } from '../permissions/index.ts';
import { jsonSchema } from '../http/declare/json-schema.ts';
import { route } from '../http/declare/route.ts';
import { testApp } from '../testing/test-app.ts';
import { count, CrudController, filter, many, max, one, resource, visibleTo, writableBy } from './index.ts';

const users = model('users', { id: t.uuidv7().pk(), name: t.text(40) });
const noteColumns = {
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
};
const notes = model('notes', noteColumns, { indexes: [{ columns: ['owner_id'] }] });
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
  class NoteController extends CrudController(resource(notes, policy as never), { permission, ...options }) {}
  return NoteController;
};

const crudOfPeople = (policy: object) => {
  class PeopleController extends CrudController(resource(users, { unscoped: true, ...policy }), { permission }) {}
  return PeopleController;
};

describe('start-up checks of resources', () => {
  test.each<[object, RegExp]>([
    [{ filter: 60 }, /unknown option "limits.filter". Did you mean "filters"\?/],
    [{ page: 10 }, /unknown option "limits.page"/],
    [{ exportRows: 10 }, /unknown option "limits.exportRows"/],
    [{ filters: 0 }, /limits.filters is 0; use an integer from 1 to 500/],
    [{ filters: 1.5 }, /limits.filters is 1.5; use an integer/],
    [{ listValues: '500' }, /limits.listValues is "500"; use an integer from 1 to 5000/],
    [{ statsRows: -1 }, /limits.statsRows is -1/],
    [{ expandRows: Number.NaN }, /limits.expandRows is NaN; use an integer of 1 or more/],
    [{ importErrors: Infinity }, /limits.importErrors is Infinity/],
    [{ offset: null }, /limits.offset is null/],
    [{ whereDepth: 9 }, /limits.whereDepth is 9; use an integer from 1 to 8/],
  ])('wrong limits are refused where they are written: %j', (limits, message) => {
    expect(() => crud({ limits })).toThrow(message);
  });

  test('limits are an object, and one that is left undefined keeps its default', () => {
    expect(() => crud({ limits: 5 })).toThrow(/limits is 5; use an object/);
    expect(faults({ '/notes': crud({ limits: { filters: undefined } }) })).toEqual([]);
  });

  test('E012: an expansion that is deeper than the limit of its controller', () => {
    const policy = { ...base, relations: { author: one(() => users, 'author_id') } };
    const deep = crud({ expand: ['author.notes'], limits: { expandDepth: 1 } }, policy);
    expect(faults({ '/notes': deep })).toContain('E012 NoteController: expand has "author.notes", deeper than 1 relations.');
    const usual = crud({ expand: ['author.a.b.c'], limits: { expandDepth: 4 } }, policy);
    expect(faults({ '/notes': usual }).filter((fault) => fault.includes('deeper'))).toEqual([]);
  });

  test('E012: more ordering columns than fit into a cursor', () => {
    const long = model('long', {
      id: t.uuidv7().pk(),
      a: t.text(200).dbDefault(''),
      b: t.text(200).dbDefault(''),
      c: t.text(200).dbDefault(''),
      d: t.text(200).dbDefault(''),
      n: t.int().dbDefault(0),
    });
    const ordered = (by: readonly string[], orderingColumns: number, page: object = {}) => {
      class LongController extends CrudController(resource(long, { unscoped: true }), {
        permission,
        ordering: { by: by as never[] },
        limits: { orderingColumns },
        page,
      }) {}
      return faults({ '/long': LongController }).filter((fault) => fault.startsWith('E'));
    };
    expect(ordered(['a', 'b', 'c', 'd'], 3)).toEqual([]);
    expect(ordered(['a', 'b', 'c', 'n'], 4)).toEqual([]);
    expect(ordered(['a', 'b', 'c', 'd'], 4, { style: 'offset' })).toEqual([]);
    expect(ordered(['a', 'b', 'c', 'd', 'n'], 4)).toEqual([
      expect.stringMatching(
        /^E012 .*limits.orderingColumns is 4, but that many text columns of ordering.by can have 800 characters together/,
      ),
    ]);
  });

  test('a good declaration starts', () => {
    expect(faults({ '/notes': crud({}) })).toEqual([]);
  });

  test.each<[string, object, object | undefined, RegExp]>([
    [
      'E018',
      { page: { style: 'page' }, filters: { page: filter(z.string(), () => true) } },
      undefined,
      /the filter "page" takes the name of a parameter/,
    ],
    [
      'E012',
      { page: { style: 'page', count: 'none' } },
      undefined,
      /page.count is set, but pages with numbers always have the exact count/,
    ],
    ['E012', { page: { style: 'page', default: 101, max: 100 } }, undefined, /page.default is 101, more than page.max 100/],
    ['E012', { filters: { titel: ['eq'] } }, undefined, /the filter "titel" refers to a column .* Did you mean "title"\?/],
    ['E012', { filters: { number: ['contains'] } }, undefined, /cannot have the operator "contains"/],
    ['E012', { filters: { hidden__name: ['eq'] } }, undefined, /has "__" in its name/],
    ['E012', { ordering: { by: ['titel'] } }, undefined, /ordering.by refers to the unknown column "titel". Did you mean "title"\?/],
    ['E012', { ordering: { by: ['body'] } }, undefined, /a text column of more than 200 characters/],
    ['E012', { ordering: { by: ['meta'] } }, undefined, /json columns cannot be sorted/],
    ['E012', { search: ['number'] }, undefined, /which is not text/],
    [
      'E012',
      { expand: ['autor'] },
      { ...base, relations: { author: one(() => users, 'author_id') } },
      /expand refers to the unknown relation "autor". Did you mean "author"\?/,
    ],
    ['E012', { filters: { title: ['like'] } }, undefined, /cannot have the operator "like"/],
    [
      'E012',
      { filters: { 'author.name.first': ['eq'] } },
      { ...base, relations: { author: one(() => users, 'author_id') } },
      /the filter "author.name.first" refers to a column that does not exist/,
    ],
    ['E012', { search: ['titel'] }, undefined, /search refers to the unknown column "titel". Did you mean "title"\?/],
    ['E012', { output: ['titel'] }, undefined, /output refers to the unknown column or computed field "titel". Did you mean "title"\?/],
    ['E012', { output: ['body'] }, { ...base, hidden: ['body'] }, /output shows "body", which the resource hides/],
    ['E012', { lookup: 'titel' }, undefined, /lookup refers to the unknown column "titel". Did you mean "title"\?/],
    [
      'E012',
      { parent: { relation: 'autor' } },
      { ...base, relations: { author: one(() => users, 'author_id') } },
      /parent refers to the unknown to-one relation "autor". Did you mean "author"\?/,
    ],
    [
      'E012',
      {},
      { ...base, input: ['titel', 'title', 'body', 'open_id'] },
      /input refers to the unknown column "titel". Did you mean "title"\?/,
    ],
    ['E012', {}, { ...base, input: ['title', 'body', 'open_id', 'maybe_id'] }, /input takes "maybe_id", which clients cannot send/],
    [
      'E012',
      {},
      {
        ...base,
        input: ['title', 'body', 'open_id', 'state'],
        state: 'state',
        transitions: { end: { from: ['draft'], to: 'done' } },
      },
      /input takes "state", which clients cannot send. The state is changed by transitions/,
    ],
    ['E012', {}, { ...base, fields: { titel: visibleTo(isStaff) } }, /fields refers to the unknown column "titel". Did you mean "title"\?/],
    [
      'E012',
      {},
      { ...base, fields: { title: visibleTo(isStaff, { hidden: 'null' }) } },
      /is hidden as null, but the column is not nullable/,
    ],
    [
      'E012',
      {},
      { ...base, state: 'stat', transitions: { end: { from: ['draft'], to: 'done' } } },
      /state refers to the unknown column "stat". Did you mean "state"\?/,
    ],
    [
      'E012',
      {},
      { ...base, computed: { label: { requires: ['titel'], response: z.string(), value: () => 'x' } } },
      /requires the unknown column "titel". Did you mean "title"\?/,
    ],
    [
      'E012',
      {},
      { ...base, relations: { author: one(() => users, 'autor_id') } },
      /refers to the unknown column "autor_id" of "notes". Did you mean "author_id"\?/,
    ],
    ['E012', { operations: { remove: false } }, undefined, /operations refers to the unknown operation "remove"/],
    ['E012', { page: { count: 'estimate' } }, undefined, /includes rows of other callers/],
    ['E012', { page: { default: 50, max: 20 } }, undefined, /page.default is 50, more than page.max 20/],
    ['E012', {}, { owner: 'owner_id', hidden: ['titel'] }, /hidden refers to the unknown column "titel"/],
    ['E013', {}, {}, /has no row rule/],
    ['E013', {}, { owner: 'ownr_id' }, /owner refers to the unknown column "ownr_id". Did you mean "owner_id"\?/],
    ['E013', {}, { ...base, version: 'versoin' }, /version refers to the unknown column "versoin"/],
    ['E013', {}, { owner: 'open_id' }, /the owner column "open_id" is writable by clients/],
    ['E013', {}, { owner: 'maybe_id' }, /the owner column "maybe_id" may be null/],
    ['E013', {}, { tenant: 'owner_id' }, /has a tenant column, but createApp has no `tenant` option/],
    ['E013', { permission: allowAny }, undefined, /the permission allowAny admits anonymous callers, but the resource has an owner/],
    ['E013', { permission: isStaff.or(isReadOnly) }, undefined, /admits anonymous callers/],
    ['E013', { etag: 'required' }, undefined, /etag is required, but the resource has no version/],
    ['E013', {}, { ...base, version: 'number' }, /does not count updates/],
    ['E013', {}, { unscoped: true, events: true }, /publishes events without an audience/],
    ['E015', {}, { ...base, input: ['title', 'open_id'] }, /nothing sets the required column "body"/],
    ['E016', { search: ['title'] }, { ...base, fields: { title: visibleTo(isStaff) } }, /search uses "title"/],
    [
      'E016',
      { ordering: { by: ['title'], default: ['title'] } },
      { ...base, fields: { title: visibleTo(isStaff) } },
      /ordering.default has "title"/,
    ],
    ['E016', { filters: { title: ['eq'] } }, { ...base, fields: { title: visibleTo(isOwner()) } }, /whose visibility depends on the row/],
    [
      'E016',
      { ordering: { by: ['title'] } },
      { ...base, fields: { title: visibleTo(isOwner()) } },
      /ordering.by has "title", which some callers cannot see/,
    ],
    ['E016', { search: ['title'] }, { ...base, hidden: ['title'] }, /search uses "title"/],
    [
      'E016',
      { stats: { by: ['state'], metrics: { most: max('number') } } },
      { ...base, fields: { number: visibleTo(isOwner()) } },
      /has "number", whose visibility depends on the row/,
    ],
    ['E016', {}, { ...base, fields: { id: visibleTo(isStaff) } }, /the key "id" is hidden/],
    [
      'E016',
      { stats: { by: ['state'], metrics: { notes: count() } } },
      { ...base, fields: { state: visibleTo(isOwner()) } },
      /stats.by has "state", whose visibility depends on the row/,
    ],
    [
      'E017',
      {},
      { ...base, relations: { twin: one(() => notes, 'author_id') } },
      /"author_id" of "notes", which does not refer to "notes"/,
    ],
    [
      'E017',
      {},
      { ...base, relations: { author: one(() => users, 'open_id') } },
      /"open_id" of "notes", which does not refer to "users". Declare it: open_id: t.ref\(\(\) => users\)/,
    ],
    [
      'E017',
      {},
      { ...base, relations: { twin: one(() => notes, 'author_id') } },
      /which does not refer to "notes". The column refers to "users": lead the relation there: one\(\(\) => users, 'author_id'\), or add/,
    ],
    [
      'E016',
      { import: { formats: ['csv'], by: 'title' } },
      { ...base, fields: { title: visibleTo(isOwner()) } },
      /import.by has "title", whose visibility depends on the row/,
    ],
    ['E017', {}, { ...base, relations: { items: many(() => links, 'a', { limit: 5 }) } }, /leads to "links", which has no resource/],
    [
      'E018',
      { filters: { limit: filter(jsonSchema({ type: 'integer' }), () => ({})) } },
      undefined,
      /takes the name of a parameter of lists/,
    ],
    [
      'E018',
      { filters: { number: ['gte'], number__gte: filter(jsonSchema({ type: 'integer' }), () => ({})) } },
      undefined,
      /two filters take the parameter "number__gte"/,
    ],
    ['E018', {}, { ...base, transitions: { end: { from: ['draft'], to: 'done' } } }, /has transitions but no state/],
    ['E018', {}, { ...base, state: 'title', transitions: { end: { from: ['a'], to: 'b' } } }, /the state column "title" is not an enum/],
    ['E018', {}, { ...base, state: 'state', transitions: { list: { from: ['draft'], to: 'done' } } }, /takes the name of an operation/],
    ['E018', {}, { ...base, state: 'state', transitions: { end: { from: ['draft'], to: 'gone' } } }, /has the state "gone"/],
    ['E018', {}, { ...base, state: 'state', transitions: { end: { from: [], to: 'done' } } }, /the transition "end" can never run/],
    [
      'E018',
      {},
      { ...base, computed: { title: { requires: ['number'], response: z.string(), value: () => 'x' } } },
      /the computed field "title" has the name of a column or relation/,
    ],
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
  ])('83: %s %j %j', (id, options, policy, sentence) => {
    const found = faults({ '/notes': crud(options, policy) });
    // Without its owner a note has a required column that nothing sets, too.
    const [fault, ...others] = id === 'E015' ? found : found.filter((each) => !each.startsWith('E015'));
    expect(others.filter((each) => !each.startsWith('E015'))).toEqual([]);
    expect(fault).toMatch(sentence);
    expect(fault?.split(' ')[0]).toBe(id);
    expect(id in checkDescriptions).toBe(true);
  });

  test('E012: conditions and orders that are data name columns, operators and values of their model', () => {
    const leaves = model('leaves', { id: t.uuidv7().pk(), note_id: t.ref(() => notes), name: t.text(20), data: t.json().nullable() });
    const start = (policy: object, options: object = {}) =>
      faults({ '/notes': crud(options, { ...base, ...policy }) }, { resources: [people, resource(leaves, { unscoped: true })] });
    const related = (options: object) => start({ relations: { leaves: many(() => leaves, 'note_id', { limit: 5, ...options }) } });
    expect(related({ order: ['-name'], where: { name: { ne: 'x' } } })).toEqual([]);
    expect(related({ order: ['nam'] })).toEqual([
      expect.stringMatching(
        /^E012 .*order of the relation "leaves" refers to the unknown column "nam" of "leaves"\. Did you mean "name"\?/,
      ),
    ]);
    expect(related({ order: ['-data'] })).toEqual([expect.stringMatching(/^E012 .*json columns cannot be sorted/)]);
    expect(related({ where: { nam: 'x' } })).toEqual([
      expect.stringMatching(
        /^E012 .*where of the relation "leaves" .*refers to an unknown column or relation of "leaves".* Did you mean "name"\?/,
      ),
    ]);
    expect(related({ where: { name: { like: 'x' } } })).toEqual([expect.stringMatching(/^E012 .*is not an operator of text columns/)]);
    expect(start({ anonymous: { stat: 'done' } }, { permission: allowAny })).toEqual([expect.stringMatching(/^E012 .*: anonymous has /)]);
    expect(start({ anonymous: { state: 'gone' } }, { permission: allowAny })).toEqual([
      expect.stringMatching(/^E012 .*state must be one of draft, done/),
    ]);
    expect(start({ admin: { rows: { or: [{ stat: 'done' }] } } })).toEqual([
      expect.stringMatching(/^E012 .*: audiences\.staff\.rows has .*Did you mean "state"\?/),
    ]);
    const author = { relations: { author: one(() => users, 'author_id') } };
    expect(start({ ...author, admin: { rows: { author: { is: { name: 'x' } } } } })).toEqual([]);
    expect(start({ ...author, admin: { rows: { author: { is: { nam: 'x' } } } } })).toEqual([expect.stringMatching(/^E012 .*of "users"/)]);
  });

  test('E012: misspelt columns of the conditions that rows returns, as far as it returns any for callers that do not exist', () => {
    const rows = (condition: (caller: never) => unknown) =>
      faults({ '/notes': crud({}, { rows: condition, relations: { author: one(() => users, 'author_id') } }) }).filter((fault) =>
        fault.startsWith('E012'),
      );
    const message = (name: string, table = 'notes') =>
      `E012 resource(notes) of NoteController: rows returns a condition on "${name}", which is not a column or relation of "${table}".`;
    expect(rows(({ user }: { user: { id: string } }) => ({ ownr_id: user.id }))).toEqual([
      `${message('ownr_id')} Did you mean "owner_id"?`,
    ]);
    expect(
      rows(({ user }: { user: { is_staff: boolean } }) => ({
        or: [{ number: undefined }, { not: { titel: 'a' } }, ...(user.is_staff ? [{ author: { is: { nme: 'b' } } }] : [])],
      })),
    ).toEqual([`${message('titel')} Did you mean "title"?`, `${message('nme', 'users')} Did you mean "name"?`]);
    expect(rows(({ action }: { action: string }) => (action === 'update' ? { zzzzzz: 1 } : true))[0]).toContain('Known: id, owner_id');
    for (const judgedLater of [
      () => Promise.reject(new Error('no database yet')),
      async () => ({ ownr_id: 'a' }),
      ({ services }: { services: { get: (name: string) => { team: string } } }) => ({ ownr_id: services.get('team').team }),
      ({ user }: { user: { team: { id: string } } }) => ({ ownr_id: user.team.id }),
      () => ({ owner_id: 'no id', author: { is: {} }, and: [{ or: [] }] }),
      () => true,
    ])
      expect(rows(judgedLater as never)).toEqual([]);
  });

  test('E014: a key of several columns needs a unique lookup', () => {
    class Links extends CrudController(resource(links, { unscoped: true }), { permission }) {}
    class BySlug extends CrudController(resource(links, { unscoped: true }), { permission, lookup: 'slug' }) {}
    class ByCode extends CrudController(resource(links, { unscoped: true }), { permission, lookup: 'code' }) {}
    expect(faults({ '/links': Links })[0]).toMatch(/E014 .*the key of "links" has 2 columns/);
    expect(faults({ '/links': BySlug })[0]).toMatch(/E014 .*"slug" is not unique/);
    expect(faults({ '/links': ByCode })).toEqual([]);
    // Expansions, cascades and bulk operations need one column, too, also where no controller is mounted.
    const pairs = model('pairs', { a: t.uuid(), b: t.uuid(), name: t.text(20).nullable().unique() }, { primaryKey: ['a', 'b'] });
    expect(faults({ '/links': ByCode }, { resources: [people, resource(pairs, { unscoped: true })] })).toEqual([
      expect.stringMatching(/^E014 .*the key of "pairs" has 2 columns, and no other column is unique/),
    ]);
  });

  test('E014: a lookup column that may be null would leave rows without an address', () => {
    const named = model('named', { id: t.uuidv7().pk(), code: t.text(40).nullable().unique() });
    class Named extends CrudController(resource(named, { unscoped: true }), { permission, lookup: 'code' }) {}
    expect(faults({ '/named': Named })).toEqual([
      expect.stringMatching(/^E014 .*the lookup column "code" may be null.*remove \.nullable\(\)/),
    ]);
  });

  test('E014: rows are not imported by a column that is unique among some of them only', () => {
    const indexes = [{ columns: ['code'], unique: true, where: "kind = 'a'" }];
    const kinds = model('kinds', { id: t.uuidv7().pk(), kind: t.text(4), code: t.text(40) }, { indexes });
    class Kinds extends CrudController(resource(kinds, { unscoped: true }), { permission, import: { formats: ['csv'], by: 'code' } }) {}
    expect(faults({ '/kinds': Kinds })).toEqual([expect.stringMatching(/^E014 .*import\.by has "code", which is not unique/)]);
  });

  test('a hidden column is taken from clients only where input names it', () => {
    const hidden = { ...base, hidden: ['body'] };
    expect(faults({ '/notes': crud({}, hidden) })).toEqual([expect.stringMatching(/^E015 .*nothing sets the required column "body"/)]);
    expect(faults({ '/notes': crud({}, { ...hidden, input: ['title', 'body', 'open_id'] }) })).toEqual([]);
  });

  test('E018: a transition is not recorded under the name of another change, and takes no name that every object has', () => {
    const start = (name: string) =>
      faults({ '/notes': crud({}, { ...base, state: 'state', transitions: { [name]: { from: ['draft'], to: 'done' } } }) });
    for (const name of ['created', 'updated', 'deleted', 'restored'])
      expect(start(name)).toEqual([expect.stringMatching(`^E018 .*the transition "${name}" has the name of a built-in change`)]);
    for (const name of ['constructor', 'toString', 'hasOwnProperty', 'crudResource'])
      expect(start(name)).toEqual([expect.stringMatching(`^E018 .*the transition "${name}" takes the name of an operation`)]);
    expect(start('finish')).toEqual([]);
  });

  test('E016: a lookup column that some callers may not see', () => {
    const coded = model('coded', { id: t.uuidv7().pk(), code: t.text(40).unique() });
    const start = (policy: object) => {
      class Coded extends CrudController(resource(coded, { unscoped: true, ...policy }), { permission, lookup: 'code' }) {}
      return faults({ '/coded': Coded });
    };
    expect(start({})).toEqual([]);
    for (const policy of [
      { fields: { code: visibleTo(isStaff) } },
      { fields: { code: visibleTo(isOwner()) } },
      { hidden: ['code'], input: ['code'] },
    ])
      expect(start(policy)).toEqual([expect.stringMatching(/^E016 .*the lookup column "code" is hidden from some callers/)]);
  });

  test('E016: a filter on a column that no caller sees, also of a relation', () => {
    const author = { relations: { author: one(() => users, 'author_id') } };
    const start = (policy: object, filters: object) =>
      faults(
        { '/notes': crud({ filters }, { ...base, ...policy }) },
        { resources: [resource(users, { unscoped: true, hidden: ['name'] })] },
      );
    expect(start({ hidden: ['number'] }, { number: ['eq'] })).toEqual([
      expect.stringMatching(/^E016 .*the filter "number" uses a column that no caller can see/),
    ]);
    expect(start(author, { 'author.name': ['eq'] })).toEqual([expect.stringMatching(/^E016 .*the filter "author\.name"/)]);
    expect(start(author, { 'author.nam': ['eq'] })).toEqual([expect.stringMatching(/^E012 /)]);
  });

  describe('E018: a transition', () => {
    const end = { from: ['draft'], to: 'done' };

    test.each(['a/b', '', '.', '..', 'a b', ':id', '*', 'a?b', 'a#b', 'a.b', '%41', 'ü', '-a', '_a'])(
      'is not named %j: it cannot be part of a URL',
      (name) => {
        const transitions = { [name]: end };
        const expected = [expect.stringMatching(/^E018 resource\(notes\).*the transition ".*" has a name that cannot be part of a URL\./)];
        expect(faults({ '/notes': crud({}, { ...base, state: 'state', transitions }) })).toEqual(expected);
        expect(faults({}, { resources: [people, resource(notes, { owner: 'owner_id', state: 'state', transitions } as never)] })).toEqual(
          expected,
        );
      },
    );

    test.each(['end', 'markDone', 'mark-done', 'mark_done', '2nd'])('may be named %j', (name) => {
      expect(faults({ '/notes': crud({}, { ...base, state: 'state', transitions: { [name]: end } }) })).toEqual([]);
    });
  });

  test('E013: a resource is unscoped, or says which rows', () => {
    for (const policy of [base, { rows: () => true }])
      expect(faults({ '/notes': crud({}, { ...policy, unscoped: true, hooks: { create: () => undefined } }) })).toEqual([
        expect.stringMatching(/^E013 .*is unscoped and has (owner|rows)\. .*remove one of them/),
      ]);
  });

  test('E013: a database that the app does not have stops the start', async () => {
    const start = testApp({
      docs: false,
      mount: { '/v1': { '/people': crudOfPeople({ using: 'othr' }) } },
      database: 'sqlite',
    });
    await expect(start).rejects.toThrow(/E013 .*in the database "othr", which the app does not have/);
  });

  describe('a resource that no controller uses is checked as well', () => {
    const open = resource(notes, {});
    const open2 = resource(links, {});
    class Ping extends Controller {
      ping = route.get('/', { permission: allowAny }, () => undefined);
    }

    test.each<[string, Record<string, unknown>, object]>([
      ['given to the app', {}, { resources: [people, open, open2] }],
      ['brought by modules', {}, { modules: [{ name: 'mine', resources: [open, open2] }], resources: [people] }],
      ['beside controllers without resources', { '/ping': Ping }, { resources: [people, open, open2] }],
      ['beside the controller of another', { '/people': crudOfPeople({}) }, { resources: [open, open2] }],
    ])('%s: every fault at once, and each once', (_how, mount, options) => {
      expect(faults(mount, options)).toEqual([
        expect.stringMatching(/^E013 resource\(notes\): has no row rule\./),
        expect.stringMatching(/^E013 resource\(links\): has no row rule\./),
      ]);
    });

    test('its faults come with those of the app', () => {
      expect(faults({}, { resources: [people, open], unknown: 1 })).toEqual([
        expect.stringMatching(/^E001 .*"unknown"/),
        expect.stringMatching(/^E013 resource\(notes\)/),
      ]);
    });

    test('two resources of a model', () => {
      expect(faults({}, { resources: [people, resource(users, { unscoped: true })] })).toEqual([
        expect.stringMatching(/^E017 The model "users" has two resources/),
      ]);
    });

    test('a database that the app does not have', async () => {
      const start = testApp({
        docs: false,
        mount: {},
        resources: [resource(users, { unscoped: true, using: 'othr' })],
        database: 'sqlite',
      });
      await expect(start).rejects.toThrow(/E013 .*resource\(users\): its rows are in the database "othr", which the app does not have/);
    });
  });

  describe('faults of a resource name it and the classes that use it', () => {
    test('made in place, or given to several', () => {
      expect(faults({ '/notes': crud({}, { hooks: { create: () => undefined } }) })).toEqual([
        expect.stringMatching(/^E013 resource\(notes\) of NoteController: has no row rule/),
      ]);
      const open = resource(notes, { hooks: { create: (_context, next) => next({} as never) } });
      class A extends CrudController(open, { permission }) {}
      class B extends CrudController(open, { permission }) {}
      expect(faults({ '/a': A, '/b': B, '/c': A })).toEqual([expect.stringMatching(/^E013 resource\(notes\) of A, B: has no row rule/)]);
    });

    test('a column that nothing sets, of the rows and of nested ones', () => {
      const pages = model('pages', { id: t.uuidv7().pk(), note_id: t.ref(() => notes), text: t.text(10), number: t.int() });
      const nesting = {
        ...base,
        input: ['title', 'open_id'],
        relations: { pages: many(() => pages, 'note_id', { limit: 100 }) },
        nested: { pages: { input: ['text'] } },
      };
      expect(faults({ '/notes': crud({}, nesting) }, { resources: [people, resource(pages, { unscoped: true })] })).toEqual([
        expect.stringMatching(
          /^E015 resource\(pages\) nested in resource\(notes\) of NoteController: nothing sets the required column "number"/,
        ),
        expect.stringMatching(/^E015 resource\(notes\) of NoteController: nothing sets the required column "body"/),
      ]);
    });

    test('nested rows whose key nothing sets: a key in the body of the parent is that of a row that exists', () => {
      const found = (key: typeof t.int | typeof t.uuidv7, hooks: object, input: string[]) => {
        const pages = model('pages', { id: key().pk(), note_id: t.ref(() => notes), text: t.text(10) });
        const nesting = {
          ...base,
          relations: { pages: many(() => pages, 'note_id', { limit: 100 }) },
          nested: { pages: { input } },
        };
        return faults({ '/notes': crud({}, nesting) }, { resources: [people, resource(pages, { unscoped: true, hooks })] });
      };
      expect(found(t.int, {}, ['text'])).toEqual([
        expect.stringMatching(
          /^E015 resource\(notes\) of NoteController: nested "pages" cannot create rows: nothing sets their key "id"\./,
        ),
      ]);
      // Rows that exist can be written with their parent.
      expect(found(t.int, {}, ['id', 'text'])).toEqual([]);
      expect(found(t.uuidv7, {}, ['text'])).toEqual([]);
      expect(found(t.int, { create: (_context: object, next: (row: object) => unknown) => next({ id: 1 }) }, ['text'])).toEqual([]);
    });

    test('two resources of a model, and faults of what gives access', () => {
      expect(faults({ '/a': crudOfPeople({}) })).toEqual([
        expect.stringMatching(/^E017 The model "users" of PeopleController has two resources\./),
      ]);
      const access = {
        name: 'shares()',
        actionOf: () => null,
        condition: () => true,
        faults: () => [{ id: 'E024', message: 'shares(): no.' }],
      };
      expect(faults({ '/notes': crud({}, { access, hooks: { create: () => undefined } }) })).toEqual([
        expect.stringMatching(/^E024 resource\(notes\) of NoteController: shares\(\): no\./),
      ]);
    });
  });

  test('E017: a relation leads to no other database', () => {
    const found = faults(
      { '/notes': crud({ idempotency: false }, { ...base, using: 'other', relations: { author: one(() => users, 'author_id') } }) },
      { database: { default: 'sqlite::memory:', other: 'sqlite::memory:' } },
    );
    expect(found).toEqual([
      expect.stringMatching(/^E017 .*the relation "author" leads to "users", whose rows are in the database "default"/),
    ]);
  });

  test('E015: a column that the controller does not take is not set by anyone', () => {
    for (const options of [
      {},
      { bulk: { create: true }, operations: { create: false } },
      { import: { formats: ['csv'] }, operations: { create: false } },
    ])
      expect(faults({ '/notes': crud({ ...options, input: ['title', 'open_id'] }, base) })).toEqual([
        expect.stringMatching(/^E015 .* of NoteController: nothing sets the required column "body" when a row is made\./),
      ]);
    expect(faults({ '/notes': crud({ input: ['title', 'open_id'], operations: { create: false } }, base) })).toEqual([]);
    const hooks = { create: async (_context: object, next: (values: object) => unknown) => next({ body: 'x' }) };
    expect(faults({ '/notes': crud({ input: ['title', 'open_id'] }, { ...base, hooks }) })).toEqual([]);
  });

  test('E015: every operation that makes rows needs its required columns, not create alone', () => {
    const policy = { ...base, input: ['title', 'open_id'] };
    for (const options of [{ bulk: { create: true } }, { import: { formats: ['csv'] } }])
      expect(faults({ '/notes': crud({ ...options, operations: { create: false } }, policy) })).toEqual([
        expect.stringMatching(/^E015 .*nothing sets the required column "body"/),
      ]);
    expect(faults({ '/notes': crud({ bulk: { destroy: true }, operations: { create: false } }, policy) })).toEqual([]);
  });

  test('E012: facts of an operation that is not offered would be ignored', () => {
    expect(faults({ '/notes': crud({ operations: { stats: { summary: 'x' } } }) })).toEqual([
      expect.stringMatching(/^E012 NoteController: operations configures "stats", which the controller does not offer/),
    ]);
    expect(faults({ '/notes': crud({ operations: { stats: false } }) })).toEqual([]);
    expect(faults({ '/notes': crud({ meta: true, operations: { meta: { summary: 'x' } } }) })).toEqual([]);
  });

  test('E012: a relation of a column that does not exist is a fault below a parent, too', () => {
    const relations = { author: one(() => users, 'autor_id') };
    expect(faults({ '/users/:autor_id/notes': crud({ parent: { relation: 'author' } }, { ...base, relations }) })).toEqual([
      expect.stringMatching(/^E012 .*refers to the unknown column "autor_id" of "notes"/),
    ]);
  });

  test('E013: tenant columns are there, required and not taken from clients', () => {
    const start = (tenant: string) => faults({ '/notes': crud({}, { ...base, tenant }) }, { tenant: () => 'a' });
    expect(start('org')).toEqual([expect.stringMatching(/^E013 .*tenant refers to the unknown column "org"/)]);
    expect(start('maybe_id')).toEqual([expect.stringMatching(/^E013 .*the tenant column "maybe_id" may be null/)]);
    expect(start('open_id')).toEqual([expect.stringMatching(/^E013 .*the tenant column "open_id" is writable by clients/)]);
  });

  test('E013: the column of the parent in the address is required', () => {
    const found = faults({
      '/users/:author_id/notes': crud(
        { parent: { relation: 'author' } },
        { ...base, relations: { author: one(() => users, 'author_id') } },
      ),
    });
    expect(found).toEqual([expect.stringMatching(/^E013 .*the parent column "author_id" may be null/)]);
  });

  test('E013: an owner needs callers with credentials, unless it is said what the others see', () => {
    expect(faults({ '/notes': crud({ permission: allowAny }, { ...base, anonymous: { state: 'done' } }) })).toEqual([]);
    expect(faults({ '/notes': crud({ permission: allowAny }, { unscoped: true, hooks: { create: () => undefined } }) })).toEqual([]);
    // A permission of the app's own is not known before it runs.
    expect(faults({ '/notes': crud({ permission: new Permission({ name: 'mine', evaluate: () => true }) }) })).toEqual([]);
  });

  test('E017: a reference that clients may send leads to a model with a resource, by its model or by its name', () => {
    const trees = model('trees', { id: t.uuidv7().pk(), over_id: t.ref('forests').nullable() });
    class Trees extends CrudController(resource(trees, { unscoped: true }), { permission }) {}
    expect(faults({ '/trees': Trees })).toEqual([
      expect.stringMatching(/^E017 .*clients may send "over_id", which refers to "forests", a model without a resource/),
    ]);
    expect(faults({ '/notes': crud({}) }, { resources: [] })).toEqual([
      expect.stringMatching(/^E017 .*clients may send "author_id", which refers to "users", a model without a resource/),
    ]);
    expect(faults({ '/notes': crud({}, { ...base, input: ['title', 'body', 'open_id'] }) }, { resources: [] })).toEqual([]);
  });

  test('E012: a controller narrows the input of its resource, and cannot widen it', () => {
    const declared = resource(notes, { ...base, input: ['title', 'body', 'open_id'] });
    const start = (input: string[]) => {
      class Notes extends CrudController(declared, { permission, input: input as never }) {}
      return faults({ '/notes': Notes });
    };
    expect(start(['title', 'open_id', 'body'])).toEqual([]);
    expect(start(['title', 'open_id', 'body', 'number'])).toEqual([
      expect.stringMatching(/^E012 .*input takes "number", which the resource does not take from clients/),
    ]);
  });

  test('E012: a filter goes through relations to one row only', () => {
    const leaves = model('leaves', { id: t.uuidv7().pk(), note_id: t.ref(() => notes), name: t.text(10) });
    const relations = { leaves: many(() => leaves, 'note_id', { limit: 5 }) };
    const found = faults(
      { '/notes': crud({ filters: { 'leaves.name': ['eq'] } }, { ...base, relations }) },
      { resources: [people, resource(leaves, { unscoped: true })] },
    );
    expect(found).toEqual([expect.stringMatching(/^E012 .*the filter "leaves.name" refers to a column that does not exist/)]);
  });

  test('E018: what is shown beside a to-many relation, and members that generic operations use, keep their names', () => {
    const leaves = model('leaves', { id: t.uuidv7().pk(), note_id: t.ref(() => notes) });
    const relations = { leaves: many(() => leaves, 'note_id', { limit: 5 }) };
    const computed = { leaves_more: { requires: ['title'], response: z.string(), value: () => 'x' } };
    expect(
      faults({ '/notes': crud({}, { ...base, relations, computed }) }, { resources: [people, resource(leaves, { unscoped: true })] }),
    ).toEqual([expect.stringMatching(/^E018 .*"leaves" shows "leaves_more" beside it/)]);
    class Taken extends crud({}) {}
    const taken = new Taken() as object;
    Object.defineProperty(taken, 'find', { value: route.get('/found', { permission }, () => undefined), enumerable: true });
    expect(faults({ '/notes': taken })).toEqual([expect.stringMatching(/^E018 .*the field "find" replaces a member/)]);
  });

  test('84: a relation to a model without a resource stops the start', () => {
    const found = faults({ '/notes': crud({}, { ...base, relations: { items: many(() => links, 'a', { limit: 5 }) } }) });
    expect(found).toContainEqual(expect.stringMatching(/^E017 .*leads to "links", which has no resource/));
  });

  test('E017: a model has one resource per app', () => {
    class One extends CrudController(resource(notes, { owner: 'owner_id' }), { permission }) {}
    class Two extends CrudController(resource(notes, { owner: 'owner_id' }), { permission }) {}
    expect(faults({ '/one': One, '/two': Two })).toEqual([expect.stringMatching(/^E017 The model "notes" of One, Two has two resources/)]);
  });

  test('E020: soft deletion needs its columns, a cascade that has them too, and unique values that become free', () => {
    const leaves = model('leaves', { id: t.uuidv7().pk(), tree_id: t.ref('trees') });
    const columns = { id: t.uuidv7().pk(), slug: t.text(20), ...softDelete() };
    const trees = model('trees', columns, { indexes: [softDeleteUnique('slug')] });
    const taken = model('trees', { ...columns, slug: t.text(20).unique() });
    const start = (source: typeof trees, policy: object, options: object = {}) => {
      class Trees extends CrudController(resource(source, { unscoped: true, ...policy }), { permission, ...options }) {}
      return faults({ '/trees': Trees }, { resources: [people, resource(leaves, { unscoped: true })] });
    };
    const relations = { leaves: many(() => leaves, 'tree_id', { limit: 5 }) };
    expect(start(trees, {}, { restore: true })).toEqual([]);
    expect(start(trees, {}, { lookup: 'slug' })).toEqual([]);
    expect(start(trees, {}, { lookup: 'slug', restore: true })).toEqual([
      expect.stringMatching(/^E020 .*offers restore by "slug", which is not unique among deleted rows/),
    ]);
    expect(start(taken, {})).toEqual([
      expect.stringMatching(/^E020 .*"slug" stays reserved by soft-deleted rows.*softDeleteUnique\('slug'\)/),
    ]);
    expect(start(taken, { softDelete: false })).toEqual([]);
    expect(start(trees, { softDelete: { cascade: ['leaves'] }, relations })).toEqual([
      expect.stringMatching(/^E020 .*leads to "leaves", which has no soft deletion/),
    ]);
    expect(start(trees, { softDelete: { cascade: ['leavess'] }, relations })).toEqual([
      expect.stringMatching(/^E020 .*Did you mean "leaves"/),
    ]);
    const nodes = model('nodes', { id: t.uuidv7().pk(), above_id: t.ref('nodes').nullable(), ...softDelete() });
    class Nodes extends CrudController(
      resource(nodes, { unscoped: true, relations: { above: one(() => nodes, 'above_id') }, softDelete: { cascade: ['above' as never] } }),
      { permission },
    ) {}
    expect(faults({ '/nodes': Nodes })).toEqual([
      expect.stringMatching(/^E020 .*the cascade refers to the unknown to-many relation "above"/),
    ]);
    expect(faults({ '/notes': crud({ restore: true }) })).toEqual([expect.stringMatching(/^E020 .*offers restore/)]);
    expect(faults({ '/notes': crud({}, { ...base, softDelete: true }) })).toEqual([expect.stringMatching(/^E020 .*no deleted_at/)]);
  });

  test('E012, E015: nested writes name a relation and columns that may be sent, and delete nothing that could not be read', () => {
    const leaves = model('leaves', {
      id: t.uuidv7().pk(),
      tree_id: t.ref('trees'),
      name: t.text(10),
      weight: t.int(),
      made_by: t.uuid().readOnly(),
    });
    const trees = model('trees', { id: t.uuidv7().pk(), name: t.text(20) });
    const start = (nested: object, hooks: object = { create: () => undefined }) => {
      const relations = { leaves: many(() => leaves, 'tree_id', { limit: 20 }) };
      class Trees extends CrudController(resource(trees, { unscoped: true, relations, nested }), { permission }) {}
      return faults({ '/trees': Trees }, { resources: [people, resource(leaves, { unscoped: true, hooks } as never)] });
    };
    expect(start({ leaves: { input: ['name', 'weight'], missing: 'delete', max: 20 } })).toEqual([]);
    expect(start({ leavs: { input: ['name'] } })).toEqual([
      expect.stringMatching(/^E012 .*is not a to-many relation. Did you mean "leaves"/),
    ]);
    for (const column of ['made_by', 'tree_id', 'nam'])
      expect(start({ leaves: { input: [column] } })).toEqual([expect.stringMatching(/^E012 .*which a client may not send/)]);
    expect(start({ leaves: { input: ['name', 'weight'], missing: 'delete', max: 21 } })).toEqual([
      expect.stringMatching(/^E012 .*uses missing: 'delete' with max 21, but the relation returns only 20 rows/),
    ]);
    expect(start({ leaves: { input: ['name'] } }, {}).map((fault) => fault.slice(0, 4))).toContain('E015');
  });

  test('E013: a database without the tables of audit or webhooks stops the start, unless nothing is recorded', () => {
    const recorders = {
      name: 'recorders',
      provides: () => ({
        audit: { databases: ['default'], record: async () => undefined },
        events: { databases: ['default'], publish: async () => undefined },
      }),
    };
    const start = (policy: object) =>
      faults(
        { '/notes': crud({ idempotency: false }, { ...base, using: 'other', ...policy }) },
        {
          database: { default: 'sqlite::memory:', other: 'sqlite::memory:' },
          modules: [recorders],
          resources: [resource(users, { unscoped: true, using: 'other', audit: false })],
        },
      );
    expect(start({})).toEqual([
      expect.stringMatching(
        /^E013 .*in the database "other", where audit\(\) has no tables.*audit\(\{ databases: \["default","other"\] \}\)/,
      ),
    ]);
    expect(start({ audit: false, events: true })).toEqual([expect.stringMatching(/^E013 .*where webhooks\(\) has no tables/)]);
    expect(start({ audit: false })).toEqual([]);
  });

  test('E013: one wrong database of audit() is reported once, with all resources whose changes it would lose', () => {
    const named = (name: string) => resource(model(name, { id: t.uuidv7().pk() }), { unscoped: true });
    const resources = ['as', 'bs', 'cs', 'ds', 'es', 'fs'].map(named);
    const elsewhere = {
      name: 'elsewhere',
      provides: () => ({ audit: { databases: ['other'], record: async () => undefined } }),
    };
    const found = faults({}, { database: { default: 'sqlite::memory:', other: 'sqlite::memory:' }, modules: [elsewhere], resources });
    expect(found).toEqual([
      'E013 resource(as), resource(bs), resource(cs), resource(ds), resource(es), resource(fs): their rows are in the database "default", ' +
        'where audit() has no tables: no change could be saved. Use audit({ databases: ["other","default"] }), or audit: false.',
    ]);
  });

  test('E019: keys of requests cannot be kept with rows of another database', () => {
    const found = faults(
      { '/notes': crud({ idempotency: 'optional' }, { ...base, using: 'other' }) },
      {
        database: { default: 'sqlite::memory:', other: 'sqlite::memory:' },
        resources: [resource(users, { unscoped: true, using: 'other' })],
      },
    );
    expect(found).toEqual([
      expect.stringMatching(/^E019 NoteController.create: is idempotent but not atomic/),
      expect.stringMatching(/^E019 NoteController.destroy: is idempotent but not atomic/),
      expect.stringMatching(/^E019 .*the idempotency records are in "default"/),
    ]);
  });

  test("E018: a route of one's own at the address of a generic operation is refused", () => {
    class NoteController extends CrudController(resource(notes, base), { permission, meta: true }) {
      mine = route.get('/meta', { permission }, () => undefined);
    }
    expect(faults({ '/notes': NoteController })).toEqual([expect.stringMatching(/^E018 .* both answer GET \/v1\/notes\/meta/)]);
  });

  test('E022: visibleTo and writableBy need a permission; a factory that was not called is not one', () => {
    const needed = { faults: [expect.objectContaining({ id: 'E022', message: expect.stringContaining('needs a permission') as unknown })] };
    const thrown = (work: () => unknown) => {
      try {
        work();
      } catch (error) {
        return error;
      }
      return undefined;
    };
    for (const given of [undefined, null, 'isStaff', isOwner]) {
      expect(thrown(() => visibleTo(given as never))).toMatchObject(needed);
      expect(thrown(() => writableBy(given as never))).toMatchObject(needed);
    }
  });

  test('E022: a permission about objects on a list must say which rows', () => {
    const about = new Permission({ name: 'about', kind: 'is_owner', evaluate: () => 'unknown' });
    expect(faults({ '/notes': crud({ permission: isAuthenticated.and(about) }) })).toEqual([
      expect.stringMatching(/^E022 .*the list permission depends on the object/),
    ]);
  });

  describe('warnings', () => {
    const warnings = async (mount: Record<string, unknown>, options: object = {}) => {
      await using started = await testApp({
        docs: false,
        mount: { '/v1': mount as Record<string, Mountable> },
        resources: [people],
        ...options,
      });
      await started.app.start();
      return started.records.filter(({ level }) => level === 40).map(({ msg }) => msg);
    };

    test('a good declaration gives none', async () => {
      expect(await warnings({ '/notes': crud({}) })).toEqual([]);
    });

    test('W005: a response of your own requires what some callers do not see', async () => {
      const row = (required: string[]) =>
        jsonSchema({ type: 'object', properties: { id: { type: 'string' }, body: { type: 'string' } }, required });
      const policy = { ...base, fields: { body: visibleTo(isStaff) } };
      const own = (response: ReturnType<typeof row>) => {
        class Notes extends crud({}, policy) {
          first = route.get('/first', { permission, response }, () => ({ id: '1' }));
        }
        return warnings({ '/notes': Notes });
      };
      expect(await own(row(['id', 'body']))).toEqual([
        expect.stringMatching(/^W005 Notes: the response of "first" requires "body", which only isStaff may see\./),
      ]);
      expect(await own(row(['id']))).toEqual([]);
      const page = jsonSchema({
        type: 'object',
        properties: { items: { type: 'array', maxItems: 5, items: { type: 'object', required: ['body'] } } },
      });
      expect(await own(page as never)).toEqual([expect.stringMatching(/^W005 /)]);
    });

    test('W006: a computed field requires what no relation has', async () => {
      const computed = { label: { requires: ['author.nam'], response: jsonSchema({ type: 'string' }), value: () => 'x' } };
      expect(await warnings({ '/notes': crud({}, { ...base, relations: { author: one(() => users, 'author_id') }, computed }) })).toEqual([
        expect.stringMatching(/^W006 .*"label" requires "author\.nam"/),
      ]);
      const deeper = { label: { ...computed.label, requires: ['author.name.first'] } };
      expect(
        await warnings({ '/notes': crud({}, { ...base, relations: { author: one(() => users, 'author_id') }, computed: deeper }) }),
      ).toEqual([expect.stringMatching(/^W006 .*"label" requires "author\.name\.first"/)]);
    });

    test('W007: a to-many relation without a limit, and one whose column no index serves', async () => {
      const leaves = (indexes: { columns: string[] }[]) =>
        model('leaves', { id: t.uuidv7().pk(), note_id: t.ref(() => notes) }, { indexes });
      const start = (target: ReturnType<typeof leaves>, more: object) =>
        warnings(
          { '/notes': crud({}, { ...base, relations: { leaves: many(() => target, 'note_id', more) } }) },
          { resources: [people, resource(target, { unscoped: true })] },
        );
      const indexed = [{ columns: ['note_id'] }];
      expect(await start(leaves(indexed), { limit: 5 })).toEqual([]);
      expect(await start(leaves(indexed), {})).toEqual([expect.stringMatching(/^W007 .*has no limit; 20 rows/)]);
      expect(await start(leaves([]), { limit: 5 })).toEqual([
        expect.stringMatching(/^W007 .*reads "note_id" of "leaves", which no index begins with/),
      ]);
    });

    test('W008: a filter or ordering that no index serves; tenant and owner may come before it', async () => {
      const indexed = (indexes: { columns: string[] }[]) =>
        model(
          'indexed',
          { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), title: t.text(40), rank: t.int().dbDefault(0) },
          { indexes },
        );
      const start = (indexes: { columns: string[] }[]) => {
        class Indexed extends CrudController(resource(indexed(indexes), { owner: 'owner_id' }), {
          permission,
          filters: { title: ['eq', 'contains'] },
          ordering: { by: ['rank'] },
        }) {}
        return warnings({ '/indexed': Indexed });
      };
      const owner = { columns: ['owner_id'] };
      expect(await start([])).toEqual([
        expect.stringMatching(/^W008 Indexed: no index of "indexed" serves owner_id \(owner\), title \(filter\), rank \(ordering\)\./),
      ]);
      expect(await start([owner, { columns: ['title'] }])).toEqual([expect.stringMatching(/^W008 .*serves rank \(ordering\)\./)]);
      expect(await start([{ columns: ['owner_id', 'title'] }, { columns: ['owner_id', '-rank', '-id'] }])).toEqual([]);
      // An index that begins with something else is none for it.
      expect(await start([owner, { columns: ['rank', 'title'] }])).toEqual([expect.stringMatching(/^W008 .*serves title \(filter\)\./)]);
    });

    test('W008: below a record, the column that refers to it may come before the one that is filtered', async () => {
      const start = (columns: readonly string[]) => {
        const leaves = model('leaves', { id: t.uuidv7().pk(), note_id: t.ref(() => users), title: t.text(40) }, { indexes: [{ columns }] });
        class Leaves extends CrudController(resource(leaves, { unscoped: true, relations: { person: one(() => users, 'note_id') } }), {
          permission,
          parent: { relation: 'person' },
          filters: { title: ['eq'] },
        }) {}
        return warnings({ '/people/:note_id/leaves': Leaves });
      };
      expect(await start(['note_id', 'title'])).toEqual([]);
      expect(await start(['note_id', 'id', 'title'])).toEqual([expect.stringMatching(/^W008 .*serves title \(filter\)\./)]);
    });

    test('W008: a tenant column that no index begins with, unless the rows are those of an owner', async () => {
      const start = (columns: readonly string[] | null, isOwned = false) => {
        const indexed = model(
          'indexed',
          { id: t.uuidv7().pk(), tenant: t.text(40).readOnly(), owner_id: isOwned ? t.uuid().readOnly() : t.uuid().nullable().readOnly() },
          { indexes: columns === null ? [] : [{ columns: [...columns] }] },
        );
        class Indexed extends CrudController(resource(indexed, { tenant: 'tenant', ...(isOwned ? { owner: 'owner_id' } : {}) }), {
          permission,
        }) {}
        return warnings({ '/indexed': Indexed }, { tenant: () => 'a' });
      };
      const ofTenant = expect.stringMatching(/^W008 Indexed: no index of "indexed" serves tenant \(tenant\)\./);
      expect(await start(null)).toEqual(expect.arrayContaining([ofTenant]));
      expect(await start(['id', 'tenant'])).toEqual(expect.arrayContaining([ofTenant]));
      for (const columns of [['tenant'], ['tenant', '-id']]) expect(await start(columns)).not.toEqual(expect.arrayContaining([ofTenant]));
      expect(await start(['owner_id'], true)).not.toEqual(expect.arrayContaining([expect.stringContaining('W008')]));
    });

    test('W033: a resource with audit: true in an app that records nothing', async () => {
      const start = (audit: boolean | undefined) =>
        warnings({ '/notes': crud({}, { unscoped: true, hooks: { create: () => undefined }, ...(audit === undefined ? {} : { audit }) }) });
      expect(await start(true)).toEqual(expect.arrayContaining([expect.stringMatching(/^W033 resource\(notes\) .*has `audit`/)]));
      for (const audit of [false, undefined]) expect((await start(audit)).join()).not.toContain('W033');
    });

    test('W010: unscoped in an app with tenants', async () => {
      expect(await warnings({ '/notes': crud({}, { unscoped: true, hooks: { create: () => undefined } }) }, { tenant: () => 'a' })).toEqual(
        [expect.stringMatching(/^W010 .*resource\(notes\)/), expect.stringMatching(/^W010 .*resource\(users\)/)],
      );
    });

    test('W011: a unique value that is not of the owner alone', async () => {
      const coded = model(
        'coded',
        { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), code: t.text(20).unique() },
        { indexes: [{ columns: ['owner_id'] }] },
      );
      class Coded extends CrudController(resource(coded, { owner: 'owner_id' }), { permission }) {}
      expect(await warnings({ '/coded': Coded })).toEqual([expect.stringMatching(/^W011 .*"code" is unique over all owners/)]);
    });
  });

  test('every check of generic CRUD has a page of its own, with what to do', () => {
    const ids = [
      'E007',
      'E012',
      'E013',
      'E014',
      'E015',
      'E016',
      'E017',
      'E018',
      'E019',
      'E020',
      'E021',
      'E022',
      'W005',
      'W006',
      'W007',
      'W008',
      'W009',
      'W010',
      'W011',
      'W012',
      'W013',
    ];
    for (const id of ids) {
      const described = checkDescriptions[id];
      expect([id, typeof described?.title, typeof described?.explanation, typeof described?.remedy]).toEqual([
        id,
        'string',
        'string',
        'string',
      ]);
    }
  });

  test('83: every fault of an app comes at once', () => {
    const found = faults({ '/notes': crud({ filters: { titel: ['eq'] }, ordering: { by: ['x'] }, search: ['y'] }, { hidden: ['z'] }) });
    expect(found.map((fault) => fault.slice(0, 4)).sort()).toEqual(['E012', 'E012', 'E012', 'E012', 'E013', 'E015']);
  });
});

describe('85: what types can say does not compile', () => {
  test('misspelt names, operators and states', () => {
    const own = resource(notes, { owner: 'owner_id' });
    const wrong = () => {
      // @ts-expect-error -- a model is not a resource
      CrudController(notes, { permission });
      // @ts-expect-error -- an option of the resource
      CrudController(own, { permission, owner: 'owner_id' });
      // @ts-expect-error -- no permission
      CrudController(own, {});
      // @ts-expect-error -- a misspelt filter
      CrudController(own, { permission, filters: { titel: ['eq'] } });
      // @ts-expect-error -- an unknown operator
      CrudController(own, { permission, filters: { title: ['like'] } });
      // @ts-expect-error -- an operator that does not fit
      CrudController(own, { permission, filters: { number: ['contains'] } });
      // @ts-expect-error -- no such owner column
      resource(notes, { owner: 'user_id' });
      // @ts-expect-error -- an unknown state
      resource(notes, { owner: 'owner_id', state: 'state', transitions: { end: { from: ['draft'], to: 'gone' } } });
      // @ts-expect-error -- a column the child does not have
      many(() => links, 'order_id');
      // @ts-expect-error -- rows that name no value of the enum
      resource(notes, { rows: () => ({ state: 'gone' }) });
      class ReadOnly extends CrudController(own, { permission, operations: { create: false } }) {
        // @ts-expect-error -- there is nothing to override
        override create = this.wrap('create', {});
      }
      return ReadOnly;
    };
    expect(wrong).toBeTypeOf('function');
  });
});
