import { appsOfDatabase } from '../../app/data/apps-of-database.ts';
import type { App } from '../../app/declare/module.ts';
import type { Principal, User } from '../../auth/people/principal.ts';
import type { Db } from '../../db/engine/db.ts';
import type { Model } from '../../db/declare/model.ts';
import type { Columns, RowOf } from '../../db/declare/rows.ts';
import type { Where } from '../../db/sql/where/where.ts';
import type { ServiceScope } from '../../di/container.ts';
import { type OptionRules, readOptions, requireArguments } from '../../options/read-options.ts';
import { either, filledText, nullable, objectWith, queryable, required, rule } from '../../options/value-rule.ts';
import { allowAny } from '../../permissions/built-ins.ts';
import type { PermissionContext } from '../../permissions/permission.ts';
import type { RowWriter } from '../options/crud-options.ts';
import type { CrudRequest } from '../policy/crud-request.ts';
import { policiesOf } from '../policy/policies.ts';
import type { Policy } from '../policy/policy.ts';
import { requireAudience } from '../checks/audience-faults.ts';
import { limits } from '../declare/limits.ts';
import type { LiveChange } from '../live/live-change.ts';
import { Operations } from './operations.ts';
import { programLive } from './program-live.ts';
import type { AsCaller } from './programs.ts';
import type { Relations } from '../declare/relation.ts';
import { type AnyResource, type Resource, type RelatedOf, isResource } from '../declare/resource.ts';
import type { Item } from '../declare/item.ts';

/** The caller that a program acts for. What it reaches is what this caller would reach over HTTP. */
export interface ProgramCaller {
  /** Null for an anonymous caller. */
  readonly user: User | null;
  readonly tenant?: string | null;
  /** How the user was authenticated. Default: a credential without scopes. */
  readonly principal?: Principal;
  /** The services that hooks and `onChange` get. Default: those of one action each. */
  readonly services?: ServiceScope;
  /** One of the resource's `audiences`, such as `staff`. Default: its own rules. */
  readonly audience?: string;
  /** In audit entries. */
  readonly requestId?: string | null;
}

/** A caller in an open transaction, which stands in place of its database. */
export interface CallerInTransaction extends ProgramCaller {
  readonly databases?: Readonly<Record<string, Db>>;
}

const callerRules: OptionRules<ProgramCaller> = {
  user: required(nullable(objectWith('a user, or null'))),
  tenant: nullable(filledText),
  principal: objectWith('a principal: { user, scheme, scopes }'),
  audience: filledText,
  services: objectWith('services of a request', 'get'),
  requestId: nullable(filledText),
};

/** A resource for code without HTTP: the same rows, fields and write pipeline as its operations. */
export interface CrudProgram<C extends Columns, R extends Relations, P, T extends string> {
  /** The row with this key among those the caller sees, or the error of a 404. */
  find(key: string): Promise<RowOf<C>>;
  /** Rows among those the caller sees, at most 1,000. */
  rows(where?: Where<C, RelatedOf<R>>, limit?: number): Promise<RowOf<C>[]>;
  /**
   * The rows among those the caller sees, as responses have them, then their changes, until the signal aborts. For resources with a controller that has
   * `live: true`.
   */
  live(where: Where<C, RelatedOf<R>> | undefined, options: { readonly signal: AbortSignal }): AsyncGenerator<LiveChange, void>;
  /** Writes through the pipeline, in a savepoint of the transaction if one is given. */
  write(tx?: Db): RowWriter<C, P, T>;
  /** A row, or several, as this caller may see them. */
  present(row: RowOf<C>): Promise<Record<string, unknown>>;
  present(rows: readonly RowOf<C>[]): Promise<Record<string, unknown>[]>;
}

/**
 * What programs, jobs and commands reach a resource with: `crudOf(app, orderResource).as({ user, tenant }).find(id)`. Where no app is at hand, as in
 * a job, a database or transaction of the app does: `crudOf(db, orderResource)`.
 *
 * @example
 * ```ts
 * const order = await crudOf(app, orderResource).as({ user, tenant: null }).find(id);
 * ```
 */
export function crudOf<C extends Columns, R extends Relations, P extends string, I extends string, T extends string>(
  source: App | Db,
  resource: Resource<C, R, P, I, T>,
): { as(caller: ProgramCaller): CrudProgram<C, R, P, T> } {
  requireArguments(
    'crudOf()',
    { app: source, resource },
    {
      app: either('an app, or a database of it: createApp(…), or the db of a job', anApp, queryable),
      resource: rule('a resource: resource(model, options)', isResource),
    },
  );
  const app = appOf(source, resource);
  policiesOf(app).of(resource);
  return {
    as(caller) {
      readOptions(`crudOf(${resource.name}).as()`, caller, callerRules);
      const { audience = null } = caller;
      requireAudience(resource, audience);
      const { programs, access } = operationsOf(app, resource, audience);
      const as = asCaller(app, caller, audience);
      return {
        find: (key: string) => as('retrieve', (request) => programs.findAs(request, key)),
        rows: (where?: Where, limit: number = limits.pageMax) => as('list', (request) => programs.rowsAs(request, where, limit)),
        live: (where: Where | undefined, { signal }: { readonly signal: AbortSignal }) =>
          programLive(app, access, {
            where,
            signal,
            request: (services, databases) => requestOf(app, { ...caller, databases }, 'list', caller.services ?? services, audience),
          }),
        write: (tx?: Db) => programs.writeAs(as, tx),
        present: (rows: Item | readonly Item[]) => as('retrieve', (request) => programs.presentAs(request, rows)),
      } as unknown as CrudProgram<C, R, P, T>;
    },
  };
}

const anApp = objectWith('an app: createApp(…)', 'inject');

/** The app itself, or the one that is open on the database and has the resource. */
function appOf(source: App | Db, resource: AnyResource): App {
  if ('inject' in source) return source;
  const apps = appsOfDatabase(source.database);
  const app = apps.find((each) => policiesOf(each).find(resource.model as unknown as Model) !== undefined) ?? apps[0];
  if (app !== undefined) return app;
  throw new Error(
    `crudOf(): no app is open on the database "${source.using}". Call it between app.ready() and app.close(), or pass the app.`,
  );
}

type KnownOperations = WeakMap<App, Map<Policy, Operations>>;

const known: KnownOperations = new WeakMap();
const knownExpanding: KnownOperations = new WeakMap();

/** The operations of a resource in an app, whether a controller offers them or not. */
export function operationsOf(app: App, resource: AnyResource, audience: string | null = null, using?: string): Operations {
  return madeOnce(known, app, resource, { audience, using }, () => []);
}

/** As {@link operationsOf}, and every relation to many can be expanded. */
export function expandingOperationsOf(app: App, resource: AnyResource, audience: string | null, using?: string): Operations {
  return madeOnce(knownExpanding, app, resource, { audience, using }, () => {
    const relations = Object.entries(resource.relations as Relations);
    return relations.filter(([, { kind }]) => kind === 'many').map(([name]) => name);
  });
}

function madeOnce(
  all: KnownOperations,
  app: App,
  resource: AnyResource,
  { audience, using }: { readonly audience: string | null; readonly using: string | undefined },
  expand: () => readonly string[],
): Operations {
  let byPolicy = all.get(app);
  if (byPolicy === undefined) all.set(app, (byPolicy = new Map()));
  const policy = policiesOf(app).of(resource, audience, using);
  let operations = byPolicy.get(policy);
  if (operations === undefined) {
    const place = { ...(audience === null ? {} : { audience }), ...(using === undefined ? {} : { using }) };
    operations = new Operations(resource, { permission: allowAny, expand: expand(), ...place });
    operations.access.prepare(app);
    operations.access.install(app);
    byPolicy.set(policy, operations);
  }
  return operations;
}

/** Makes a request per action, with services that end with it. */
export function asCaller(app: App, caller: CallerInTransaction, audience: string | null): AsCaller {
  return async (action, work) => {
    if (caller.services !== undefined) return work(requestOf(app, caller, action, caller.services, audience));
    await using services = app.services.scope();
    return await work(requestOf(app, caller, action, services, audience));
  };
}

export function requestOf(
  app: App,
  caller: CallerInTransaction,
  action: string,
  services: ServiceScope,
  audience: string | null,
): CrudRequest {
  const { user, tenant = null, requestId = null } = caller;
  const principal = user === null ? null : (caller.principal ?? { user, scheme: 'program', scopes: null });
  const context: PermissionContext = {
    method: METHODS[action] ?? 'POST',
    url: '',
    headers: {},
    principal,
    user,
    tenant,
    scope: undefined,
    audience,
    get db() {
      return app.db;
    },
    rules: app.rules,
  };
  return {
    context,
    user,
    principal,
    tenant,
    action,
    clock: app.clock,
    services,
    requestId,
    databases: caller.databases ?? app.databases,
    audience,
    controller: null,
    verdicts: new Map(),
    scopes: new Map(),
  };
}

/** Permissions may look at the method: what an action would be over HTTP. */
const METHODS: Readonly<Record<string, string>> = { list: 'GET', retrieve: 'GET', update: 'PATCH', destroy: 'DELETE' };
