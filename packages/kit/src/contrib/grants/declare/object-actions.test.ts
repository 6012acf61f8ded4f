import { describe, expect, test } from 'vitest';
import { model, t } from '../../../db/index.ts';
import { createApp } from '../../../app/assemble/create-app.ts';
import { Controller } from '../../../http/compile/controller.ts';
import { route } from '../../../http/declare/route.ts';
import { CrudController, resource } from '../../../crud/index.ts';
import { hasRule, isAuthenticated } from '../../../permissions/index.ts';
import { grants } from '../grant/access.ts';
import { rulesBackend } from '../backends/index.ts';
import { objectGrants } from '../module.ts';
import { objectActions, type ObjectActions, type ObjectActionsOptions } from './object-actions.ts';
import { hasGrant } from '../rows/permission.ts';
import { sharing } from '../serve/sharing.ts';

let count = 0;
const things = () => model(`things_${(count += 1)}`, { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), name: t.text(20) });
const declare = (options: Partial<ObjectActionsOptions>) => () =>
  objectActions(things(), { actions: ['view', 'change'], ...options } as never);

describe('a declaration', () => {
  test.each([
    [{ actions: ['change'] }, 'has no action "view"'],
    [{ actions: ['view', 'view'] }, 'names an action twice'],
    [{ actions: ['view', 'Fly'] }, 'snake_case'],
    [{ sets: { viewer: ['veiw'] } }, 'the set "viewer" names no action or set "veiw"'],
    [{ sets: { a: ['b'], b: ['a'] } }, 'contains itself'],
    [{ sets: { view: ['change'] } }, '"view" is an action and a set'],
    [{ creator: 'manger', sets: { manager: ['view'] } }, 'creator "manger" is neither a set nor an action'],
    [{ depth: 3 }, 'depth without through'],
    [{ subjects: ['everyone'] }, 'tenant'],
    [{ colour: 'red' }, 'colour'],
  ])('%j is refused', (options, message) => {
    expect(declare(options as never)).toThrow(message);
  });

  test('is made once per model, and resolves sets', () => {
    const each = things();
    const made = objectActions(each, {
      actions: ['view', 'change', 'share'],
      sets: { viewer: ['view'], editor: ['viewer', 'change'], manager: ['editor', 'share'] },
    });
    expect(() => objectActions(each, { actions: ['view'] })).toThrow('has actions already');
    expect(made.setsWith('change')).toEqual(['editor', 'manager']);
    expect([...made.expand('manager')].sort()).toEqual(['change', 'share', 'view']);
    // What is no longer declared gives nothing.
    expect([...made.expand('emperor')]).toEqual([]);
    expect([...made.expand(',fly,view,')]).toEqual(['view']);
  });
});

describe('at start-up', () => {
  const start = async (objects: readonly ObjectActions[], controller: new () => object, more: { tenant?: () => string } = {}) => {
    const app = createApp({
      database: 'sqlite::memory:',
      log: { level: 'silent' },
      modules: [objectGrants({ objects })],
      mount: { '/v1': { '/things': controller as never } },
      ...more,
    });
    try {
      await app.ready();
    } finally {
      await app.close();
    }
  };

  test('an operation without an action fails; one that is mapped does not', () => {
    const each = model(`states_${(count += 1)}`, {
      id: t.uuidv7().pk(),
      owner_id: t.uuid().readOnly(),
      status: t.enum(['a', 'b']).dbDefault('a'),
    });
    const actions = objectActions(each, { actions: ['view', 'change', 'delete'] });
    const controllerOf = (access: ReturnType<typeof grants>) => {
      const made = resource(each, { owner: 'owner_id', access, state: 'status', transitions: { approve: { from: ['a'], to: 'b' } } });
      return class Things extends CrudController(made, { permission: isAuthenticated }) {};
    };
    const create = (controller: new () => object) =>
      createApp({
        database: 'sqlite::memory:',
        log: { level: 'silent' },
        modules: [objectGrants({ objects: [actions] })],
        mount: { '/v1': { '/things': controller as never } },
      });
    expect(() => create(controllerOf(grants(each)))).toThrow(/E024.*"approve" is not mapped to an action/s);
    expect(() => create(controllerOf(grants(each, { operations: { approve: 'fly' } })))).toThrow(/needs "fly", which is not an action/);
    expect(() => create(controllerOf(grants(each, { operations: { approve: 'change' } })))).not.toThrow();
  });

  test('grants without actions, without the module, and objects that their creator could not see, fail', () => {
    const [bare, alone] = [things(), things()];
    objectActions(alone, { actions: ['view', 'change', 'delete'] });
    const create = (made: ReturnType<typeof resource>, modules: Parameters<typeof createApp>[0]['modules']) => () =>
      createApp({
        database: 'sqlite::memory:',
        log: { level: 'silent' },
        modules: modules ?? [],
        mount: { '/v1': { '/things': class Things extends CrudController(made as never, { permission: isAuthenticated }) {} as never } },
      });
    expect(create(resource(bare, { owner: 'owner_id', access: grants(bare) }) as never, [])).toThrow(/no actions/);
    expect(create(resource(alone, { owner: 'owner_id', access: grants(alone) }) as never, [])).toThrow(/the module is missing/);
    expect(create(resource(alone, { access: grants(alone), input: ['name'] }) as never, [objectGrants({ objects: [] })])).toThrow(
      /the creator of an object could not see it/,
    );
  });

  test('objects that nobody creates need no creator; a controller, a parent or the admin site that creates them does', async () => {
    const each = things();
    const actions = objectActions(each, { actions: ['view', 'change', 'delete'] });
    const made = resource(each, { access: grants(each), input: ['name'] });
    const reads = { permission: isAuthenticated, operations: { create: false } } as const;
    class Kept extends CrudController(made, reads) {}
    await start([actions], Kept);
    for (const options of [{ bulk: { create: true } }, { import: { formats: ['csv'] } }] as const) {
      class Offered extends CrudController(made, { ...reads, ...options }) {}
      await expect(start([actions], Offered)).rejects.toThrow(/E024.*the creator of an object could not see it/s);
    }
    const other = things();
    const otherActions = objectActions(other, { actions: ['view', 'change', 'delete'] });
    class Staffed extends CrudController(resource(other, { access: grants(other), input: ['name'], admin: { rows: true } }), reads) {}
    await expect(start([otherActions], Staffed)).rejects.toThrow(/E024.*the creator of an object could not see it/s);
  });

  test('hasGrant needs a model it knows, and sharing an action "share"', async () => {
    const each = things();
    const actions = objectActions(each, { actions: ['view', 'change', 'delete'] });
    class Custom extends Controller {
      one = route.get('/', { permission: hasGrant('change') }, () => undefined);
    }
    await expect(start([actions], Custom)).rejects.toThrow(/hasGrant\('change'\) has no model\. Pass the declaration/);
    class Named extends Controller {
      one = route.get('/', { permission: hasGrant('fly', each as never) }, () => undefined);
    }
    await expect(start([actions], Named)).rejects.toThrow(/has no such action\. Known: view, change, delete\./);
    class Misspelt extends Controller {
      one = route.get('/', { permission: hasGrant('chnage', each as never) }, () => undefined);
    }
    await expect(start([actions], Misspelt)).rejects.toThrow(/has no such action\. Did you mean "change"\?/);
    class Declared extends Controller {
      one = route.get('/', { permission: hasGrant('change', actions) }, () => undefined);
    }
    await expect(start([actions], Declared)).resolves.toBeUndefined();
    const made = resource(each, { owner: 'owner_id', access: grants(each) });
    class Things extends CrudController(made, { permission: isAuthenticated }) {}
    await expect(start([actions], class Shared extends sharing(Things) {})).rejects.toThrow(/no action "share"/);
    expect(() => sharing(Controller as never)).toThrow('made by CrudController');
  });

  test('an operation that is offered needs its action', async () => {
    const each = things();
    const actions = objectActions(each, { actions: ['view', 'change'] });
    const made = resource(each, { owner: 'owner_id', access: grants(each) });
    class Offered extends CrudController(made, { permission: isAuthenticated, bulk: { destroy: true } }) {}
    await expect(start([actions], Offered)).rejects.toThrow(
      /E024.*the operation "destroy" is not mapped to an action.*the operation "bulkDestroy" is not mapped to an action/s,
    );
    // The action that the page names for this operation.
    await expect(start([actions], Offered)).rejects.toThrow(/Declare an action "delete", or map the operation/);
    class Kept extends CrudController(made, { permission: isAuthenticated, operations: { destroy: false } }) {}
    await start([actions], Kept);
  });

  test('a resource has the tenant of its actions', async () => {
    const each = model(`rooms_${(count += 1)}`, {
      id: t.uuidv7().pk(),
      owner_id: t.uuid().readOnly(),
      org: t.text(20).readOnly().default('x'),
    });
    const actions = objectActions(each, { actions: ['view', 'change', 'delete'], tenant: 'org' });
    class Rooms extends CrudController(resource(each, { owner: 'owner_id', access: grants(each) }), { permission: isAuthenticated }) {}
    await expect(start([actions], Rooms, { tenant: () => 'north' })).rejects.toThrow(
      /E024.*the tenant is "org" for grants, but the resource has no tenant/s,
    );
  });

  test('objects of a tenant need to know which users belong to it', async () => {
    const each = model(`rooms_${(count += 1)}`, { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), org: t.text(20).readOnly() });
    const actions = objectActions(each, { actions: ['view', 'change', 'delete'], tenant: 'org' });
    class Rooms extends CrudController(resource(each, { owner: 'owner_id', tenant: 'org', access: grants(each) }), {
      permission: isAuthenticated,
    }) {}
    await expect(start([actions], Rooms, { tenant: () => 'north' })).rejects.toThrow(/E024.*has a tenant, and isInTenant is missing/s);
  });

  test('a parent without actions fails', async () => {
    const parent = things();
    const child = model(`children_${(count += 1)}`, { id: t.uuidv7().pk(), parent_id: t.ref(() => parent).nullable() });
    const orphan = objectActions(child, { actions: ['view'], through: 'parent_id' });
    class Open extends Controller {
      one = route.get('/', { permission: isAuthenticated }, () => undefined);
    }
    await expect(start([orphan], Open)).rejects.toThrow(/leads to no model with actions/);
  });

  test('a backend of rules says what it takes', () => {
    expect(() => rulesBackend({ view: 'rule' } as never)).toThrow('permissions by action');
    expect(rulesBackend({ view: hasRule('can_view') }).name).toBe('rules');
  });
});
