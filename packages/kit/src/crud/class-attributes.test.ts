import { describe, expect, test } from 'vitest';
import { createApp } from '../app/assemble/create-app.ts';
import { StartUpError } from '../app/check/start-up-error.ts';
import { AccountController, accounts } from '../contrib/accounts/index.ts';
import { UploadController } from '../contrib/uploads/index.ts';
import { WebhookEndpointController } from '../contrib/webhooks/index.ts';
import { model, t } from '../db/index.ts';
import { Controller, type ControllerClass, type Mountable } from '../http/compile/controller.ts';
import { route } from '../http/declare/route.ts';
import { InvalidOptions } from '../options/read-options.ts';
import { allowAny, hasRule, isAuthenticated, isStaff } from '../permissions/index.ts';
import { clientThrottle } from '../throttle/index.ts';
import { controllerRules, resourceRules } from './options/option-rules.ts';
import { CrudController, many, resource } from './index.ts';

const notes = model('notes', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), title: t.text(100), salary: t.int().nullable() });
const noteResource = resource(notes, { owner: 'owner_id' });
const Base = CrudController(noteResource, { permission: isAuthenticated });
const Files = CrudController(noteResource, { permission: isAuthenticated, export: ['csv'] });

function faultsOf(controller: Mountable, options: object = {}): string[] {
  try {
    createApp({
      database: 'sqlite::memory:',
      log: { level: 'silent' },
      docs: false,
      mount: { '/v1': { '/x': controller } },
      silencedChecks: {},
      ...options,
    });
    return [];
  } catch (error) {
    if (!(error instanceof StartUpError)) throw error;
    return error.faults.map(({ id, message, hint }) => `${id} ${message} ${hint ?? ''}`.trim()).filter((line) => /E0(01|02|11)/.test(line));
  }
}

/** Controllers with one more attribute, in each way that a class can have one. */
const waysOf = (type: ControllerClass, name: string, value: unknown): Record<string, ControllerClass> => {
  const { [name]: bare } = {
    [name]: class Notes extends (type as new () => Controller) {
      constructor() {
        super();
        Object.assign(this, { [name]: value });
      }
    },
  };
  const fixed = class Notes extends (type as new () => Controller) {};
  Object.defineProperty(fixed, name, { value, enumerable: true });
  const accessor = class Notes extends (type as new () => Controller) {};
  Object.defineProperty(accessor.prototype, name, { get: () => value, configurable: true });
  const below = class Notes extends (fixed as new () => Controller) {};
  return { bare, fixed, accessor, below } as unknown as Record<string, ControllerClass>;
};

/** `name` is a static of every class, and `permission` is one of every controller. */
const namesOf = (rules: object) => Object.keys(rules).filter((name) => name !== 'name' && name !== 'permission');

describe('an option of CrudController() or resource() as an attribute of the class stops the start', () => {
  const cases = [...new Set([...namesOf(controllerRules), ...namesOf(resourceRules)])];

  test.each(cases)('%s', (name) => {
    const call = Object.hasOwn(controllerRules, name) ? `CrudController(resource, { ${name}: … })` : `resource(model, { ${name}: … })`;
    for (const value of [['id'], { destroy: false }, () => ({}), undefined]) {
      for (const [way, controller] of Object.entries(waysOf(Base as unknown as ControllerClass, name, value))) {
        const kind = way === 'bare' || way === 'accessor' ? 'a bare class attribute' : 'a static';
        const message = `E002 Notes: the option "${name}" is ${kind} and would be ignored. Write it in the options: ${call}.`;
        expect([way, faultsOf(controller)]).toEqual([way, [message]]);
      }
    }
  });

  test('a method of such a name, too', () => {
    class Notes extends (Base as unknown as new () => Controller) {
      rows() {
        return { owner_id: 'me' };
      }
    }
    expect(faultsOf(Notes)).toEqual([
      'E002 Notes: the option "rows" is a method and would be ignored. Write it in the options: resource(model, { rows: … }).',
    ]);
  });

  test('a bare permission would be ignored, a static one guards', () => {
    class Bare extends Base {
      permission = isStaff;
    }
    expect(faultsOf(Bare)).toEqual([
      'E002 Bare: the option "permission" is a bare class attribute and would be ignored. Write "static readonly permission = …".',
    ]);
    class Guarded extends Base {
      static override readonly permission = isStaff;
      static override readonly throttles = [clientThrottle('10/min')];
    }
    expect(faultsOf(Guarded)).toEqual([]);
  });

  test('routes that override an operation, or have such a name, are routes; other attributes are free', () => {
    class Notes extends Files {
      static readonly titlesMax = 10;
      readonly titles = new Map<string, string>();
      override export = this.wrap('export', { summary: 'As a file' });
      search = route.get('/search', { permission: isAuthenticated }, () => undefined);
      titleOf(): string {
        return 'a method';
      }
    }
    expect(faultsOf(Notes)).toEqual([]);
  });
});

describe('handwritten controllers and those of modules', () => {
  test.each([
    ['permission', isStaff],
    ['throttles', [clientThrottle('10/min')]],
    ['errors', {}],
    ['middleware', []],
    ['tags', ['orders']],
  ])('a bare %s, or one with a getter, stops the start', (name, value) => {
    class Own extends Controller {
      list = route.get('/', { permission: allowAny }, () => undefined);
    }
    const { bare, accessor } = waysOf(Own, name, value);
    for (const controller of [bare, accessor])
      expect(faultsOf(controller as ControllerClass)).toEqual([
        `E002 Notes: the option "${name}" is a bare class attribute and would be ignored. Write "static readonly ${name} = …".`,
      ]);
  });

  test.each([
    ['scope', 'orders:read'],
    ['auth', ['session']],
    ['csrf', false],
    ['idempotent', true],
    ['atomic', true],
    ['etag', 'required'],
    ['hidden', true],
  ])('%s is an option of each route: on the class it stops the start', (name, value) => {
    class Own extends Controller {
      list = route.get('/', { permission: allowAny }, () => undefined);
    }
    const { bare, fixed } = waysOf(Own, name, value);
    for (const controller of [bare, fixed])
      expect(faultsOf(controller as ControllerClass)).toEqual([
        `E002 Notes: "${name}" is an option of routes; on the controller it would be ignored. Write it in each route: list = route.get('/', { ${name}: …, … }).`,
      ]);
    // A service of the application that has such a name.
    const { bare: service } = waysOf(Own, name, new Map());
    expect(faultsOf(service as ControllerClass)).toEqual([]);
  });

  test('a controller of a module takes its own options as statics, and no others', () => {
    const wrong = (type: unknown, name: string, value: unknown) => {
      const { fixed } = waysOf(type as ControllerClass, name, value);
      return faultsOf(fixed as ControllerClass, { modules: [accounts()] })[0];
    };
    expect(wrong(AccountController, 'sessionLifetimeMs', 1)).toMatch(/^E001 Notes: unknown option "sessionLifetimeMs"/);
    expect(wrong(UploadController, 'contentTypes', ['image/*'])).toMatch(/^E001 Notes: unknown option "contentTypes"/);
    expect(wrong(UploadController, 'policy', undefined)).toMatch(/^E0(08|11)/);
    expect(wrong(WebhookEndpointController, 'tenantField', undefined)).toBe(
      'E011 Notes: tenantField is undefined. Remove tenantField, or set it: a value from an import cycle, or of a misspelt name, is undefined.',
    );
  });
});

const messageOf = (declare: () => unknown): string => {
  try {
    declare();
    return 'started';
  } catch (error) {
    if (!(error instanceof InvalidOptions)) throw error;
    return error.faults[0]?.message ?? '';
  }
};

describe('an option that decides who may do what is never absent because its value is undefined', () => {
  test.each(namesOf(resourceRules))('resource(): %s', (name) => {
    expect(messageOf(() => resource(notes, { owner: 'owner_id', [name]: undefined } as never))).toMatch(
      new RegExp(`^resource\\(notes\\): ${name} is undefined\\.$`),
    );
  });

  test.each(namesOf(controllerRules))('CrudController(): %s', (name) => {
    expect(messageOf(() => CrudController(noteResource, { permission: isAuthenticated, [name]: undefined }))).toBe(
      `CrudController(): ${name} is undefined.`,
    );
  });

  test.each<[string, () => unknown, RegExp]>([
    [
      'the permission of an operation',
      () => crud({ operations: { destroy: { permission: undefined } } }),
      /operations.destroy.permission is u/,
    ],
    ['an operation', () => crud({ operations: { destroy: undefined } }), /operations.destroy is missing/],
    ['a filter', () => crud({ filters: { title: undefined } }), /filters.title is missing/],
    ['the rule of a field', () => policy({ fields: { salary: undefined } }), /fields.salary is missing/],
    [
      'the permission of a transition',
      () => policy({ transitions: { pay: { from: [1], to: 2, permission: undefined } } }),
      /pay.permission is u/,
    ],
    ['the condition of a relation', () => many(() => notes, 'owner_id', { where: undefined as never }), /many\(\): where is undefined/],
  ])('%s', (_, declare, message) => {
    expect(messageOf(declare)).toMatch(message);
  });

  test('the permission that wrap() adds', () => {
    class Notes extends Files {
      override export = this.wrap('export', { permission: undefined as never });
    }
    class Own extends Controller {
      list = route.get('/', { permission: allowAny }, () => undefined);
    }
    class Below extends Own {
      override list = this.wrap('list', { throttles: undefined as never, summary: undefined as never });
    }
    class Kept extends Own {
      override list = this.wrap('list', { summary: undefined as never });
    }
    expect(messageOf(() => new Notes())).toBe('Notes: wrap("export"): permission is undefined.');
    expect(messageOf(() => new Below())).toBe('Below: wrap("list"): throttles is undefined.');
    expect(messageOf(() => new Kept())).toBe('started');
  });

  test.each(['scope', 'auth', 'throttles', 'validate', 'atomic', 'idempotent', 'etag'])('of a route: %s', (name) => {
    class Own extends Controller {
      list = route.get('/', { permission: allowAny, [name]: undefined }, () => undefined);
    }
    expect(faultsOf(Own)[0]).toContain(`E011 Own.list: ${name} is undefined.`);
  });

  test.each(['permission', 'throttles', 'middleware'])('the static of a controller, and the option of a mount: %s', (name) => {
    class Own extends Controller {
      list = route.get('/', { permission: allowAny }, () => undefined);
    }
    const { fixed } = waysOf(Own, name, undefined);
    expect(faultsOf(fixed as ControllerClass)[0]).toContain(`E011 Notes: ${name} is undefined.`);
    expect(faultsOf(Own, { mount: { '/v1': { controllers: { '/x': Own }, [name]: undefined } } })[0]).toContain(
      `E011 mount["/v1"]: ${name} is undefined.`,
    );
  });

  test.each(['tenant', 'membership', 'throttles', 'middleware'])('of createApp: %s', (name) => {
    class Own extends Controller {
      list = route.get('/', { permission: allowAny }, () => undefined);
    }
    expect(faultsOf(Own, { [name]: undefined })).toEqual([expect.stringContaining(`E011 createApp: ${name} is undefined.`)]);
    // What only describes the application may be absent in this way.
    expect(faultsOf(Own, { title: undefined, timeoutMs: undefined, throttleStorage: undefined })).toEqual([]);
  });

  const crud = (options: object) => CrudController(noteResource, { permission: hasRule('x'), ...options });
  const policy = (options: object) => resource(notes, { owner: 'owner_id', ...options } as never);
});
