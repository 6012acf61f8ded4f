import { controllerId, operationId, snake } from './operation-id.ts';
import { conditionalFaults, withConditionalFacts } from './conditional-facts.ts';
import type { Authenticator } from '../../auth/request/authenticator.ts';
import { constraintErrors } from '../../db/engine/constraint-fault.ts';
import { isErrorDefinition } from '../../errors/catalog.ts';
import type { ErrorMap } from '../../errors/error-map.ts';
import { admitsAnonymous } from '../../permissions/admits-anonymous.ts';
import { all, Permission, type Rule } from '../../permissions/permission.ts';
import type { Throttle, ThrottleRates } from '../../throttle/throttle.ts';
import type { CompiledRoute, RaisedError, ResponseFacts, RouteSchema } from '../exchange/compiled-route.ts';
import type { DeclaredParts } from './declared-parts.ts';
import { ControllerBase, inheritedOptions, type ControllerOptions, type InheritedOptions, type Mountable } from './controller.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import type { Fault } from '../../options/fault.ts';
import { idempotencyPlan } from '../declare/idempotent-options.ts';
import { jsonSchema } from '../declare/json-schema.ts';
import type { Middleware } from '../exchange/middleware.ts';
import { controllerOptionFaults, routeOptionFaults } from './option-faults.ts';
import { pathParameters, pathParamsSchema } from '../declare/path-params.ts';
import { rawBodyOf, rawMediaTypeOf } from '../declare/raw.ts';
import { collisionFaults, partFaults, routeFaults } from './route-faults.ts';
import { isRoute, type Deprecation, type Route } from '../declare/route.ts';
import { isSchema, jsonSchemaOf, type Schema } from '../declare/schema.ts';
import { groupValueFaults, routeValueFaults } from './value-faults.ts';
import { tenantFacts } from './tenant-header.ts';
import { withTenantParams } from './tenant-params.ts';
import { askingOrder } from '../../auth/request/authenticate.ts';

/** One version of the API, as the app normalised it. */
export interface MountPlan {
  readonly path: string;
  readonly controllers: Readonly<Record<string, Mountable>>;
  readonly deprecated: boolean | Deprecation;
  readonly errors: ErrorMap | undefined;
  readonly middleware: readonly Middleware[];
  readonly throttles: readonly Throttle[];
  readonly permission: Permission | undefined;
}

/** What the routes of an app have in common, and what controllers that prepare themselves get. */
export interface RouteDefaults extends Omit<DeclaredParts, 'controllers'> {
  readonly authenticators: readonly Authenticator[];
  readonly throttles: readonly Throttle[];
  readonly errors: ErrorMap | undefined;
  /** Asked last. */
  readonly moduleErrors: readonly ErrorMap[];
  readonly middleware: readonly Middleware[];
  readonly rules: Readonly<Record<string, Rule>>;
  readonly rates: ThrottleRates;
  readonly bodyBytesMax: number;
  readonly timeoutMs: number;
  /** By which requests name their tenant; undefined where the app declares none. */
  readonly tenantHeader: string | undefined;
  readonly tenantParams: readonly string[];
}

export interface CompiledMount {
  readonly routes: readonly CompiledRoute[];
  /** One instance per mount. */
  readonly controllers: readonly ControllerBase[];
  readonly faults: readonly Fault[];
  /** The middleware objects behind each route's names. */
  readonly middleware: ReadonlyMap<CompiledRoute, readonly Middleware[]>;
}

/** Turns controllers into the route table, and finds everything that is wrong with them at once. */
export function compileRoutes(mounts: readonly MountPlan[], defaults: RouteDefaults): CompiledMount {
  const compiler = new RouteCompiler(defaults);
  const mounted = mounts.flatMap((mount) =>
    Object.entries(mount.controllers).map(([prefix, mountable]) => ({
      mount,
      prefix,
      controller: compiler.instance(mount, prefix, mountable),
    })),
  );
  // Every controller exists before the first is compiled: one may describe its rows by what another says of them.
  compiler.prepare(mounted.flatMap(({ controller }) => controller ?? []));
  for (const { mount, prefix, controller } of mounted) if (controller !== undefined) compiler.controller(mount, prefix, controller);
  compiler.dropYielding();
  compiler.faults.push(...collisionFaults(compiler.routes));
  return compiler;
}

/** A controller that must know the others before its routes are compiled. */
interface PreparedController extends ControllerBase {
  prepare?(declared: DeclaredParts): void;
}

/** A controller at one of its addresses. */
interface MountedClass {
  readonly mount: MountPlan;
  readonly prefix: string;
  readonly type: ControllerOptions;
  readonly inherited: InheritedOptions;
  /** Appended to the operation ids of every mount but the first. */
  readonly suffix: string;
}

/** The values of every class of the chain: what a subclass shadows is in force too. */
function chainFaults(where: string, controller: ControllerBase): Fault[] {
  const faults: Fault[] = [];
  for (
    let type: unknown = controller.constructor;
    // The statics of ControllerBase have no values.
    typeof type === 'function' && type !== Function.prototype && type !== ControllerBase;
    type = Object.getPrototypeOf(type)
  )
    faults.push(...groupValueFaults(where, type));
  return [...new Map(faults.map((fault) => [fault.message, fault])).values()];
}

class RouteCompiler implements CompiledMount {
  readonly routes: CompiledRoute[] = [];
  controllers: readonly ControllerBase[] = [];
  readonly faults: Fault[] = [];
  readonly middleware = new Map<CompiledRoute, readonly Middleware[]>();
  readonly #defaults: RouteDefaults;
  /** Where each controller class was mounted first: that mount keeps the plain operation ids. */
  readonly #firstMount = new Map<unknown, string>();

  constructor(defaults: RouteDefaults) {
    this.#defaults = defaults;
  }

  prepare(controllers: readonly ControllerBase[]): void {
    this.controllers = controllers;
    const { resources, modules, hasTenants, users } = this.#defaults;
    for (const controller of controllers)
      (controller as PreparedController).prepare?.({ controllers, resources, modules, hasTenants, users });
  }

  /** What the toolkit serves unless the application has an operation at the same address (`metadata: { yields: true }`). */
  dropYielding(): void {
    const isYielding = ({ metadata }: CompiledRoute) => (metadata as { readonly yields?: unknown }).yields === true;
    const taken = new Set(this.routes.filter((route) => !isYielding(route)).map(({ method, path }) => `${method} ${path}`));
    const kept = this.routes.filter((route) => !isYielding(route) || !taken.has(`${route.method} ${route.path}`));
    this.routes.splice(0, this.routes.length, ...kept);
  }

  controller(mount: MountPlan, prefix: string, controller: ControllerBase): void {
    const place = `mount["${mount.path}"]["${prefix}"]`;
    const type = controller.constructor as unknown as ControllerOptions;
    const routes = Object.entries(controller).filter((entry): entry is [string, Route] => isRoute(entry[1]));
    if (routes.length === 0) {
      const hint = 'Routes are instance fields: list = route.get(…), not static and not methods.';
      this.faults.push({ id: 'E002', message: `${type.name || place}: has no routes.`, hint });
    }
    this.faults.push(...controllerOptionFaults(type.name || place, controller));
    const inherited = inheritedOptions(controller);
    const unusable = chainFaults(type.name || place, controller);
    this.faults.push(...unusable);
    if (unusable.length > 0) return;
    const first = this.#firstMount.get(type) ?? `${mount.path}${prefix}`;
    this.#firstMount.set(type, first);
    const suffix = first === `${mount.path}${prefix}` ? '' : `_${snake(mount.path) || snake(prefix)}`;
    for (const [field, route] of routes) this.#route({ mount, prefix, type, inherited, suffix }, field, route);
  }

  instance(mount: MountPlan, prefix: string, mountable: Mountable): ControllerBase | undefined {
    const place = `mount["${mount.path}"]["${prefix}"]`;
    try {
      if (typeof mountable === 'function') return new mountable();
      if (typeof mountable === 'object' && mountable !== null) return mountable;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.faults.push({
        id: 'E008',
        message: `${place}: the controller cannot be created: ${reason}`,
        hint: 'Mount an instance if it takes arguments.',
      });
      return undefined;
    }
    this.faults.push({
      id: 'E008',
      message: `${place}: not a controller.`,
      hint: 'Mount a class that extends Controller, or an instance of one.',
    });
    return undefined;
  }

  #route({ mount, prefix, type, inherited, suffix }: MountedClass, field: string, route: Route): void {
    const where = `${type.name}.${field}`;
    const unusable = [...routeValueFaults(where, route), ...conditionalFaults(where, route)];
    this.faults.push(...unusable);
    if (unusable.length > 0) return;
    const options = withConditionalFacts(route);
    this.faults.push(...routeOptionFaults(where, route), ...partFaults(where, [mount.path, prefix, route.path]));
    const permission = this.#permission(where, [...inherited.permissions, mount.permission, options.permission]);
    if (permission === undefined) return;
    const middleware = [...this.#defaults.middleware, ...mount.middleware, ...inherited.middleware];
    const { errors, moduleErrors } = this.#defaults;
    const maps = [options.errors, ...inherited.errors, mount.errors, errors, ...moduleErrors, constraintErrors].filter(
      (map) => map !== undefined,
    );
    const path = joinPath(mount.path, prefix, route.path);
    const response = this.#schema(where, 'response', options.response, 'output');
    const rawMediaType = options.response === undefined ? undefined : rawMediaTypeOf(options.response);
    const kind = route.kind === 'stream' ? 'stream' : rawMediaType === undefined ? 'json' : 'raw';
    const compiled: CompiledRoute = {
      operationId: options.operationId ?? operationId(type.name, field, suffix),
      method: route.method,
      path,
      mount: mount.path,
      controller: type.name,
      field,
      kind,
      ends: options.ends === true,
      mediaType: kind === 'stream' ? 'text/event-stream' : (rawMediaType ?? (response === undefined ? undefined : 'application/json')),
      summary: options.summary,
      description: options.description,
      tags: options.tags ?? type.tags ?? [controllerId(type.name)],
      deprecated: options.deprecated ?? type.deprecated ?? mount.deprecated,
      hidden: options.hidden ?? false,
      params: withTenantParams(this.#schema(where, 'params', options.params ?? defaultParams(path), 'input'), path, this.#defaults),
      query: this.#schema(where, 'query', options.query, 'input'),
      headers: this.#schema(where, 'headers', options.headers, 'input'),
      cookies: this.#schema(where, 'cookies', options.cookies, 'input'),
      body: this.#schema(where, 'body', options.body, 'input'),
      rawBody: rawBodyOf(options.body),
      response,
      live: this.#schema(where, 'live events', route.live?.response, 'output'),
      status: options.status ?? (kind === 'json' && response === undefined ? 204 : 200),
      responses: this.#responses(where, options.responses ?? {}),
      permission,
      scope: options.scope,
      authenticators: this.#authenticators(where, options.auth).filter((each) => !route.ignoresCookies || each.verifyCsrf === undefined),
      csrf: options.csrf !== false,
      throttles: [
        ...new Set([
          ...(options.throttled === false ? [] : [...this.#defaults.throttles, ...mount.throttles, ...inherited.throttles]),
          ...((options.throttles ?? []) as readonly Throttle[]),
        ]),
      ],
      errors: maps,
      raises: this.#raises(where, options.raises ?? [], maps),
      middleware: [],
      documents: [],
      responseFacts: {},
      bodyBytesMax: rawBodyOf(options.body)?.bytesMax ?? options.bodyBytesMax ?? this.#defaults.bodyBytesMax,
      timeoutMs: options.timeoutMs ?? (kind === 'stream' ? 0 : this.#defaults.timeoutMs),
      atomic: options.atomic === true ? {} : options.atomic === false ? undefined : options.atomic,
      // Here, because only here the whole permission is known: of the mount, the controller and the operation.
      idempotency: idempotencyPlan(
        options.idempotent ?? (route.takesKeys === true && !admitsAnonymous(permission, route.method)),
        response !== undefined && showsSensitive(response.json),
      ),
      isRead: route.isRead === true,
      readFrom: options.readFrom,
      tool: options.tool,
      ...tenantFacts(this.#defaults.tenantHeader, permission, { ...inherited.metadata, ...options.metadata }),
      route,
    };
    this.#finish(where, compiled, middleware);
  }

  #finish(where: string, compiled: CompiledRoute, middleware: readonly Middleware[]): void {
    const applying: Middleware[] = [];
    for (const each of middleware) {
      try {
        if (each.appliesTo?.(compiled) ?? true) applying.push(each);
      } catch (error) {
        this.faults.push({
          id: 'E011',
          message: `${where}: middleware "${each.name}": ${error instanceof Error ? error.message : String(error)}`,
        });
      }
    }
    const documents = applying.flatMap((each) => each.documents ?? []);
    const route = Object.freeze({
      ...compiled,
      middleware: applying.map(({ name }) => name),
      documents,
      responseFacts: Object.assign({}, ...applying.map((each) => each.responseFacts?.(compiled) ?? {})) as ResponseFacts,
      raises: [...compiled.raises, ...documents.flatMap(({ raises = [] }) => raises)],
    });
    if (route.method === 'GET' && route.body !== undefined) {
      this.faults.push({
        id: 'E008',
        message: `${where}: GET has no request body.`,
        hint: 'Use route.query (safe, with a body) or query parameters.',
      });
    }
    if (route.body !== undefined && rawMediaTypeOf(route.body.schema) !== undefined) {
      this.faults.push({
        id: 'E008',
        message: `${where}: raw("…") describes a response, not a request body.`,
        hint: `Give a list of media types: body: raw(['text/csv'], { stream: true }).`,
      });
    }
    if ((route.status === 204 || route.status === 304) && route.response !== undefined) {
      this.faults.push({
        id: 'E008',
        message: `${where}: a response with status ${route.status} has no body.`,
        hint: 'Remove the response schema or the status.',
      });
    }
    this.faults.push(...routeFaults(route, this.#defaults.rules, this.#defaults.rates));
    this.routes.push(route);
    this.middleware.set(route, applying);
  }

  #permission(where: string, given: readonly unknown[]): Permission | undefined {
    if (given.at(-1) === undefined) {
      this.faults.push({
        id: 'E005',
        message: `${where}: has no permission.`,
        hint: 'Set a permission; for a public route, permission: allowAny.',
      });
      return undefined;
    }
    const parts = given.filter((each) => each !== undefined);
    if (parts.some((each) => !(each instanceof Permission))) {
      const hint = 'Call the factory: hasScopes(), isOwner(); combine with all(), any(), not().';
      this.faults.push({ id: 'E005', message: `${where}: "permission" is not a Permission.`, hint });
      return undefined;
    }
    const permissions = [...new Set(parts as Permission[])];
    return permissions.length === 1 ? permissions[0] : all(...permissions);
  }

  #schema(where: string, part: string, schema: unknown, direction: 'input' | 'output'): RouteSchema | undefined {
    if (schema === undefined) return undefined;
    if (!isSchema(schema)) {
      this.faults.push({
        id: 'E008',
        message: `${where}: "${part}" is not a Standard Schema.`,
        hint: 'Use Zod 4, model.input/output, or any library of https://standardschema.dev.',
      });
      return undefined;
    }
    try {
      return { schema, json: jsonSchemaOf(schema, direction) };
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      const hint = 'Use types JSON can carry; for dates, z.iso.datetime().';
      this.faults.push({ id: 'E008', message: `${where}: the ${part} schema cannot be written as JSON Schema: ${reason}`, hint });
      return undefined;
    }
  }

  #responses(where: string, given: NonNullable<Route['options']['responses']>): CompiledRoute['responses'] {
    return Object.fromEntries(
      Object.entries(given).map(([status, { description, response, headers = {}, mediaTypes = [] }]) => [
        status,
        { description, response: this.#schema(where, `response ${status}`, response, 'output'), headers, mediaTypes },
      ]),
    );
  }

  #authenticators(where: string, names: readonly string[] | undefined): readonly Authenticator[] {
    const known = this.#defaults.authenticators;
    if (names === undefined) return askingOrder(known.filter((each) => each.callsRoute === undefined));
    const chosen = names.flatMap((name) => {
      const found = known.find((each) => each.name === name);
      if (found !== undefined) return [found];
      const hint =
        didYouMean(
          name,
          known.map((each) => each.name),
        ).trim() || `Known: ${known.map((each) => each.name).join(', ') || 'none'}.`;
      this.faults.push({ id: 'E005', message: `${where}: no authenticator is named "${name}".`, hint });
      return [];
    });
    return askingOrder(chosen);
  }

  #raises(where: string, raises: NonNullable<Route['options']['raises']>, maps: readonly ErrorMap[]): readonly RaisedError[] {
    return raises.flatMap((raised) => {
      if (isErrorDefinition(raised)) return [{ status: raised.status, code: raised.code, detail: raised.detail, members: raised.members }];
      const rule = maps.map((map) => map.ruleFor(raised)).find((each) => each !== undefined);
      if (rule !== undefined) {
        return [{ status: rule.status, code: rule.code, detail: typeof rule.detail === 'string' ? rule.detail : `${raised.name}.` }];
      }
      const hint = `Map it: errors: errors().on(${raised.name}, { status, code }) on the operation, its controller, version or app.`;
      this.faults.push({
        id: 'E010',
        message: `${where}: raises ${raised.name}, which no error map covers, so callers would see a 500.`,
        hint,
      });
      return [];
    });
  }
}

/** A path says which parameters it has: each is text unless a schema says more. */
function defaultParams(path: string): Schema | undefined {
  const names = pathParameters(path);
  return names.length === 0 ? undefined : jsonSchema(pathParamsSchema(names));
}

function joinPath(...parts: readonly string[]): string {
  const path = parts.map((part) => (part === '/' ? '' : part)).join('');
  return path === '' ? '/' : path;
}

/** Whether some member of the answer is marked as sensitive: such an answer is not stored. */
function showsSensitive(json: object): boolean {
  return JSON.stringify(json).includes('"x-sensitive":true');
}
