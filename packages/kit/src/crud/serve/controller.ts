import type { App } from '../../app/declare/module.ts';
import type { User } from '../../auth/people/principal.ts';
import type { Db } from '../../db/engine/db.ts';
import { cursorsOf } from '../../app/data/cursors.ts';
import type { Columns } from '../../db/declare/rows.ts';
import type { TriggeredTable } from '../../db/migrations/core/change-sql.ts';
import type { Where } from '../../db/sql/where/where.ts';
import { Controller } from '../../http/compile/controller.ts';
import type { DeclaredParts } from '../../http/compile/declared-parts.ts';
import { argumentOptions } from '../../http/declare/controller-options.ts';
import type { HandlerContext } from '../../http/declare/handler-context.ts';
import type { Route } from '../../http/declare/route.ts';
import { routeAround, type WrapOptions } from '../../http/declare/route-around.ts';
import type { Schema } from '../../http/declare/schema.ts';
import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';
import { exchangeOf } from '../../http/serve/serve-route.ts';
import { withOnceSchema } from '../mount/once-schema.ts';
import { itemSchema } from '../mount/schemas.ts';
import { giveOnce, requireOnce } from '../policy/give-once.ts';
import { lazySchema } from '../mount/lazy-schema.ts';
import type { Fault } from '../../options/fault.ts';
import { type Permission } from '../../permissions/permission.ts';
import type { BulkOptions } from '../options/bulk-options.ts';
import type { AnyCrudOptions, CrudClass, CrudOptions, Extra, Offered, UseResourceOfTheModel } from '../options/crud-options.ts';
import { controllerFaults } from '../checks/controller-faults.ts';
import { triggerFaults } from '../checks/live-faults.ts';
import { unknownDatabase } from '../checks/policy-faults.ts';
import { Operations } from './operations.ts';
import { OperationRoutes } from './operation-routes.ts';
import { namedActions } from '../mount/named-actions.ts';
import { RouteMaker } from './route-maker.ts';
import { doingTheSameAs } from '../options/implied-operations.ts';
import { fieldOf, operationOf } from '../options/operation-field.ts';
import type { MountedResource } from '../mount/mounted-resource.ts';
import type { Context } from '../read/list-access.ts';
import { checkControllerOptions, controllerRules, requireResource, resourceRules } from '../options/option-rules.ts';
import type { Relations } from '../declare/relation.ts';
import type { AnyResource, Resource } from '../declare/resource.ts';
import { selectionField } from '../declare/action-rule.ts';
import type { Item } from '../declare/item.ts';
import { triggeredTable } from '../write/change-log.ts';
import type { MountedBy, ResourceAccess } from './resource-access.ts';

/** A type of its own: editors show its name in place of all that it infers. */
type CrudControllerOf = <
  C extends Columns,
  R extends Relations,
  P extends string,
  I extends string,
  T extends string,
  U extends User | null,
  // oxlint-disable-next-line typescript/no-empty-object-type -- nothing is said of single operations
  const N = {},
  // oxlint-disable-next-line typescript/no-empty-object-type -- no filters
  const F = {},
  const Q extends boolean = false,
  // oxlint-disable-next-line typescript/no-empty-object-type -- no bulk operations
  const B extends BulkOptions = {},
  X extends string = string,
>(
  source: Resource<C, R, P, I, T, X> | UseResourceOfTheModel,
  options: CrudOptions<C, R, U, N, F, Q, B, NoInfer<X>, NoInfer<T>>,
) => CrudClass<C, U, Offered<N, Extra<Q, B>>, T, I, P>;

function crudController(source: AnyResource, options: AnyCrudOptions): unknown {
  requireResource(source);
  checkControllerOptions(options);
  return crudClass(source, options);
}

/**
 * A base class with the generic operations of a resource. The resource defines which rows and fields a caller can see and change; the options
 * define who can call the operations and which of them exist.
 *
 * ```ts
 * const noteResource = resource(notes, { owner: 'owner_id' });
 * class NoteController extends CrudController(noteResource, { permission: isAuthenticated, filters: { pinned: ['eq'] } }) {}
 * ```
 */
export const CrudController: CrudControllerOf = crudController as unknown as CrudControllerOf;

const mountedByController = new WeakMap<object, ResourceAccess>();

/** The resource of a controller that CrudController() made; undefined for any other. For inspection and tests. */
export function mountedResourceOf(controller: object): MountedResource | undefined {
  return mountedByController.get(controller);
}

/** `meta` of `GET /meta`: a record with such a key could not be read, because the other operation is at its URL. */
function* takenSegments(controller: object): Iterable<string> {
  for (const route of Object.values(controller) as readonly Partial<Route>[]) {
    if (route?.isRoute !== true) continue;
    const [, segment] =
      (route.method === 'POST' || route.method === 'QUERY' ? /^\/(actions)\// : /^\/([^/:*]+)$/).exec(route.path ?? '') ?? [];
    if (segment !== undefined) yield segment;
  }
}

/** The call that takes an option. `permission` is also a static, which adds to it. */
const optionCalls: Readonly<Record<string, string>> = Object.fromEntries([
  ...Object.keys(resourceRules).map((name) => [name, `resource(model, { ${name}: … })`]),
  ...Object.keys(controllerRules)
    .filter((name) => name !== 'permission')
    .map((name) => [name, `CrudController(resource, { ${name}: … })`]),
]);

/** A module's controller declares `using` and `live` as static options of its own: the class of an app sets them. */
function ofClass(type: object, options: AnyCrudOptions): AnyCrudOptions {
  const { using, live } = type as { readonly using?: unknown; readonly live?: unknown };
  return { ...options, ...(typeof using === 'string' ? { using } : {}), ...(typeof live === 'boolean' ? { live } : {}) };
}

/** The tenant that the requests of a controller act for, where a method of its class decides. */
function tenantOf(controller: object): MountedBy['tenantOf'] {
  const deciding = controller as { readonly tenantOf?: (context: Context) => string | null | Promise<string | null> };
  return typeof deciding.tenantOf === 'function' ? (context) => deciding.tenantOf?.(context) ?? null : undefined;
}

function crudClass(declared: AnyResource, options: AnyCrudOptions): unknown {
  class Crud extends Controller {
    static readonly crudResource = declared;
    static readonly [argumentOptions] = optionCalls;
    static readonly model = declared.model as unknown;
    /** A static adds to every route of the class, also to those a subclass brings or puts in the place of an operation. */
    static override readonly permission = options.permission as Permission;
    /** For mixins that add routes of their own. */
    static readonly crudOptions = options;
    readonly crudResource!: AnyResource;
    readonly keyParams!: Schema;
    readonly #mountedBy: MountedBy = { controller: this.constructor, tenantOf: tenantOf(this) };
    readonly #operations = new Operations(declared, ofClass(this.constructor, options), this.#mountedBy);
    readonly #below: Crud[] = [];

    constructor() {
      super();
      mountedByController.set(this, this.#operations.access);
      // Not enumerable: what is listed of a controller are its routes.
      Object.defineProperty(this, 'crudResource', { value: declared, enumerable: false });
      const maker = new RouteMaker(this.#operations);
      Object.defineProperty(this, 'keyParams', { value: maker.params, enumerable: false });
      for (const [name, route] of new OperationRoutes(this.#operations, maker).routes()) {
        // A transition called `find` or `constructor` is reported at start-up; until then the class must stay what it is.
        if (!(name in Crud.prototype) && !Object.hasOwn(this, name)) (this as unknown as Record<string, Route>)[name] = route;
      }
    }

    override wrap(field: string, facts: WrapOptions, handler?: (context: HandlerContext, next: () => unknown) => unknown): Route {
      const wrapped = super.wrap(field, facts, handler);
      const { permission } = facts;
      if (permission === undefined) return wrapped;
      const fields = this as unknown as Record<string, Route | undefined>;
      const operation = operationOf(options, field);
      const selected = namedActions(this.#operations.access).some(({ name, rule }) => name === operation && rule.on === 'selection');
      for (const name of [...doingTheSameAs(operation, options), ...(selected ? [selectionField(operation)] : [])]) {
        const otherField = fieldOf(options, name);
        const other = fields[otherField];
        if (other !== undefined) fields[otherField] = routeAround(other, { permission });
      }
      return wrapped;
    }

    /** The routes of another controller, below the records of this one. It is not mounted by itself. */
    below(path: string, other: Crud): Readonly<Record<string, Route>> {
      this.#below.push(other);
      mountedByController.get(other)?.mountBelow(this.#mountedBy);
      const routes = Object.entries(other as object as Readonly<Record<string, Partial<Route>>>).filter(
        ([, each]) => each?.isRoute === true,
      );
      return Object.fromEntries(
        routes.map(([name, each]) => [name, { ...(each as Route), path: `${path}${each.path === '/' ? '' : each.path}` }]),
      );
    }

    get isLive(): boolean {
      return this.#operations.live !== undefined;
    }

    get triggeredTables(): readonly TriggeredTable[] {
      const { policy } = this.#operations.access;
      const own = policy.isLogged && policy.isTriggered ? [triggeredTable(policy.model)] : [];
      return [...own, ...this.#below.flatMap((other) => other.triggeredTables)];
    }

    get controllersBelow(): readonly Crud[] {
      return this.#below;
    }

    prepare(given: DeclaredParts): void {
      this.#operations.access.prepare(given, takenSegments(this));
      for (const other of this.#below) other.prepare(given);
    }

    faults(app: App): readonly Fault[] {
      const faults = controllerFaults(this.constructor.name, this, this.#operations.access, app);
      return [...faults, ...this.#below.flatMap((other) => [...this.#otherDatabase(other), ...other.faults(app)])];
    }

    #otherDatabase(other: Crud): Fault[] {
      const { using } = this.#operations.access;
      const found = mountedByController.get(other)?.using;
      if (using === found) return [];
      const message = `${this.constructor.name}: uses the database "${using}", and ${other.constructor.name} below its records "${found}".`;
      return [{ id: 'E013', message, hint: `Give it the same database: CrudController(resource, { using: '${using}' }).` }];
    }

    async databaseFaults(app: App): Promise<readonly Fault[]> {
      const below = await Promise.all(this.#below.map((other) => other.databaseFaults(app)));
      return [...(await this.#ownDatabaseFaults(app)), ...below.flat()];
    }

    async #ownDatabaseFaults(app: App): Promise<readonly Fault[]> {
      const { policy, list } = this.#operations.access;
      const db = app.databases[policy.using];
      if (db === undefined) return [unknownDatabase(this.constructor.name, policy.using, app)];
      // Read here, so that the first list needs no more statements than the others. A database without tables has none yet.
      if (list.page.style === 'cursor') await cursorsOf(app).catch(() => undefined);
      const faults = await triggerFaults(db, this.constructor.name, this.isLive ? policy : undefined);
      if (list.search?.check === undefined) return faults;
      const found = await list.search.check({ model: policy.model, db });
      return [...faults, ...found.map(({ id, message, hint }) => ({ id, message: `${this.constructor.name}: ${message}`, hint }))];
    }

    install(app: App): void {
      this.#operations.access.install(app);
      for (const other of this.#below) other.install(app);
    }

    find(context: Context, key: string): Promise<Item> {
      return this.#operations.programs.find(context, key);
    }

    rows(context: Context, where?: Where, limit?: number): Promise<Item[]> {
      return this.#operations.programs.rows(context, where, limit);
    }

    write(context: Context, tx?: Db): object {
      return this.#operations.programs.write(context, tx);
    }

    onceSchema(field: string): Schema {
      const { access } = this.#operations;
      return lazySchema(() => withOnceSchema(access.policy, field, itemSchema(access.policy, access.output, new Set())));
    }

    async presentOnce(context: Context, row: Item, values: Readonly<Record<string, string>>): Promise<Item> {
      const { access, answering, programs } = this.#operations;
      const { field } = exchangeOf(context.request).route as CompiledRoute;
      const collected = new Map<string, string | null>();
      for (const [name, value] of Object.entries(values)) giveOnce(access.policy, field, collected)(name, value);
      requireOnce(access.policy, field, collected);
      return answering.withOnce(context, access.policy, await programs.present(context, row), collected);
    }

    present(context: Context, rows: Item | readonly Item[]): Promise<Item | Item[]> {
      return this.#operations.programs.present(context, rows);
    }
  }
  return Crud;
}
