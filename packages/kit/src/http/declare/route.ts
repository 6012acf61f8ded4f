import type { User } from '../../auth/people/principal.ts';
import type { Operation } from '../../events/command.ts';
import type { ErrorDefinition } from '../../errors/catalog.ts';
import type { ErrorClass, ErrorMap } from '../../errors/error-map.ts';
import type { FieldError } from '../../errors/kit-error.ts';
import type { Permission } from '../../permissions/permission.ts';
import type { Throttle, UseClientThrottleOrUserThrottle } from '../../throttle/throttle.ts';
import type { HandlerContext } from './handler-context.ts';
import type { LiveRoute, RouteNews } from './live-route.ts';
import type { AtomicOptions, Idempotent } from './idempotent-options.ts';
import type { PathParams } from './path-params.ts';
import type { AnswerOf, InputOf, JsonSchema, OutputOf, Schema } from './schema.ts';
import type { ServerSentEvent } from './server-sent-event.ts';

export type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'QUERY';

/** Announced by the deprecation middleware: RFC 9745 `Deprecation`, RFC 8594 `Sunset`, a `Link` to what to do. */
export interface Deprecation {
  /** Sent as `Deprecation`. */
  readonly since: string | Date;
  /** When the operation will be removed, sent as `Sunset`. */
  readonly sunset?: string | Date;
  /** A page about the deprecation, sent as `Link`. */
  readonly link?: string;
}

type MaybeSchema = Schema | undefined;

export interface ResponseFacts {
  readonly description?: string;
  readonly response?: Schema;
  /** Response headers by name, each with what it says: `{ ETag: 'The version of the row.' }`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Of an answer that is not JSON and comes in several forms: `['text/csv', 'application/x-ndjson']`. */
  readonly mediaTypes?: readonly string[];
}

/** What an AI agent is told about an operation. */
export interface ToolFacts {
  /** 1 to 128 of `A-Z`, `a-z`, `0-9`, `_`, `.` and `-`. Default: the operation id. */
  readonly name?: string;
  /** When to use the tool, and what it does. Default: the summary and the description of the operation. */
  readonly description?: string;
  /** Names of arguments, where a name is in two parts of the request or the body is not an object: `{ 'query.id': 'filter_id', body: 'lines' }`. */
  readonly arguments?: Readonly<Record<string, string>>;
  /** Marks an operation as destructive that does not look like it. Agents may ask their user first. */
  readonly destructive?: true;
  /** Each call is confirmed by the user of the agent. */
  readonly confirm?: true;
}

export interface RouteFacts {
  /** The scope a credential must carry; needs `hasScopes()` in the permission. */
  readonly scope?: string;
  /** The status of a successful response. Default: 200, or 204 without a response schema. */
  readonly status?: number;
  /** Limits of the route, besides those of its controller and of the app: `[userThrottle('100/min')]`. */
  readonly throttles?: readonly (Throttle | UseClientThrottleOrUserThrottle)[];
  /** `false` leaves the route out of the throttles of the app, its version and its controller: for probes, which must not fail because others ask too often. */
  readonly throttled?: false;
  /** How errors of your own classes become responses of this route: `errors().map(…)`. */
  readonly errors?: ErrorMap;
  /** Errors this operation answers with, for documents and clients: definitions of a catalog, or classes an error map covers. */
  readonly raises?: readonly (ErrorDefinition | ErrorClass)[];
  /** A few words for documents: `Cancel an order`. Default: the name of the field in words. */
  readonly summary?: string;
  /** What the operation does, for documents; Markdown. Default: who can call it. */
  readonly description?: string;
  /** Marks the operation in documents and with headers: `true`, or since when, until when and what to use instead. */
  readonly deprecated?: boolean | Deprecation;
  /** Names of the authenticators asked, in order; the app's all unless said. `[]` asks none. */
  readonly auth?: readonly string[];
  /** Groups of the OpenAPI document. Default: the name of the controller. */
  readonly tags?: readonly string[];
  /** `false` exempts the route from CSRF proof (a login form has no session yet). */
  readonly csrf?: false;
  /** Most bytes of the body. Default: that of the app, 1 MiB. */
  readonly bodyBytesMax?: number;
  /** Replaces the generated `<controller>_<field>`. */
  readonly operationId?: string;
  /** Longest the handler may take before the caller gets 503 `deadline_exceeded` and `signal` is aborted. */
  readonly timeoutMs?: number;
  /**
   * Answers besides errors, by status: those the handler chooses with `reply.code(207)`, and headers of the route's own status. Each has
   * its own schema; an answer of a status without one has no body.
   */
  readonly responses?: Readonly<Record<number, ResponseFacts>>;
  /**
   * The handler runs in one transaction of the app's `default` database, its `tx`; the response is made inside it, sent after the commit. With
   * `retries` the handler may run more than once.
   */
  readonly atomic?: boolean | AtomicOptions;
  /**
   * A request with an `Idempotency-Key` is done once, however often it is sent; repeating it gets the same response. Needs `atomic`, so that the
   * change and the note that it was made are saved together.
   */
  readonly idempotent?: Idempotent;
  /**
   * Conditional requests. A read answers 304 where `If-None-Match` names its `ETag`: the version that the handler set with `etag(version)`, else a
   * hash of the body. A change calls `ifMatch(version)` with the current version: 412 unless `If-Match` names it. `'required'`: 428 without the header.
   */
  readonly etag?: true | 'required';
  /**
   * A replica of the app's database, by its name in `database`. Reads go there while it is known to be fresh and the caller did not write lately,
   * else to the primary; `db` is then one of the two. For GET and QUERY. Permissions always ask the primary.
   */
  readonly readFrom?: string;
  /** Offers the operation to AI agents, where mcp() is installed. `false` leaves it out of what mcp({ include }) selects. */
  readonly tool?: boolean | ToolFacts;
  /** Left out of the OpenAPI document. */
  readonly hidden?: boolean;
  /** Facts of modules about this route (CRUD, idempotency, …), keyed by module name; never read by the core. */
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** Every route sets a permission: access is closed by default. Apart from the other options, or a misspelt `permission` hides their types. */
export interface RequiresPermission<U extends User | null = User | null> {
  /** Who can call the route; `allowAny` for everyone. Added to the controller's permission. */
  readonly permission: Permission<U>;
}

/** Options of a route besides its permission. */
export interface RouteSettings<
  P extends MaybeSchema = MaybeSchema,
  Q extends MaybeSchema = MaybeSchema,
  H extends MaybeSchema = MaybeSchema,
  B extends MaybeSchema = MaybeSchema,
  R extends MaybeSchema = MaybeSchema,
  U extends User | null = User | null,
  C extends MaybeSchema = MaybeSchema,
> extends RouteFacts {
  /** The schema of the path parameters. Default: each is a string. */
  readonly params?: P;
  /** The schema of the query string. Without one, a query parameter is rejected. */
  readonly query?: Q;
  /** The schema of the headers that the handler reads. */
  readonly headers?: H;
  /**
   * The schema of the cookies that the handler reads; others are ignored. Their values are text, percent-decoded, turned into numbers and booleans
   * where the schema asks for it. For routes with a JSON response.
   */
  readonly cookies?: C;
  /** The schema of the body: JSON, `raw(…)` or `multipart(…)`. Without one, a body is rejected. */
  readonly body?: B;
  /** The schema of the response. Members that it does not have are not sent; without one there is no body. */
  readonly response?: R;
  /**
   * Rules about the body that a schema cannot state. It gets the members that the schema accepts, as they were sent, also when the schema
   * refuses others: the caller sees the faults of both in one 422. It returns the faults, or throws a 422 with a code of its own, which is kept
   * where nothing else is wrong.
   */
  validate?(
    this: void,
    body: Partial<InputOf<B>>,
    context: HandlerContext<unknown, unknown, unknown, unknown, U>,
  ): readonly FieldError[] | void | Promise<readonly FieldError[] | void>;
}

/** Options of a route. */
export interface RouteOptions<
  P extends MaybeSchema = MaybeSchema,
  Q extends MaybeSchema = MaybeSchema,
  H extends MaybeSchema = MaybeSchema,
  B extends MaybeSchema = MaybeSchema,
  R extends MaybeSchema = MaybeSchema,
  U extends User | null = User | null,
  C extends MaybeSchema = MaybeSchema,
>
  extends RouteSettings<P, Q, H, B, R, U, C>, RequiresPermission<U> {}

export interface StreamOptions<
  P extends MaybeSchema = MaybeSchema,
  Q extends MaybeSchema = MaybeSchema,
  H extends MaybeSchema = MaybeSchema,
  B extends MaybeSchema = MaybeSchema,
  R extends MaybeSchema = MaybeSchema,
  U extends User | null = User | null,
>
  extends StreamSettings<P, Q, H, B, R, U>, RequiresPermission<U> {}

/** Options of a stream besides its permission. */
export interface StreamSettings<
  P extends MaybeSchema = MaybeSchema,
  Q extends MaybeSchema = MaybeSchema,
  H extends MaybeSchema = MaybeSchema,
  B extends MaybeSchema = MaybeSchema,
  R extends MaybeSchema = MaybeSchema,
  U extends User | null = User | null,
> extends RouteSettings<P, Q, H, B, R, U, undefined> {
  /** `GET` unless said; `POST` and `QUERY` streams may have a body. */
  readonly method?: 'GET' | 'POST' | 'QUERY';
  /** A comment line is sent when nothing else was for this long, so proxies keep the connection. */
  readonly heartbeatMs?: number;
  /**
   * The stream is finite: its last event is called `end`. Where the generator returns without one, it is sent with `data: null`. Documents
   * say so, and generated clients take a stream that ends without it for a broken connection.
   */
  readonly ends?: true;
}

// oxlint-disable-next-line typescript/no-explicit-any -- any schema, result and context; the options say which result fits
type AnyOperation<Result = any> = Operation<any, Result, any>;

/** Shown by the compiler where a handler returns a body and the route has no `response` schema. No value has this type. */
export interface SetAResponseSchema {
  readonly responseIsMissing: never;
}

type Returned<R> = R extends Schema
  ? AnswerOf<R> | Promise<AnswerOf<R>>
  : void | undefined | Promise<void | undefined> | SetAResponseSchema;

/**
 * The last argument of a route: its handler, or nothing where `command` names a command or query. One signature for both: with two, the compiler
 * reports a mistake against the wrong one.
 */
type HandlerArgument<O, Path extends string, P, Q, H, B, R, U extends User | null, C> = [O] extends [undefined]
  ? [handler: (context: ContextOf<Path, P, Q, H, B, U, C>) => Returned<R>]
  : [];

/** `command` is a command or query whose schema is that of the body (of the query string on GET and DELETE); `body` and `query` are its own. */
interface OperationOption<O, R> {
  readonly command?: O & AnyOperation<AnswerOf<R>>;
}

/** No schema: nothing was declared, so nothing is passed on. */
type Nothing = object;

type ContextOf<Path extends string, P, Q, H, B, U extends User | null, C> = HandlerContext<
  OutputOf<P, string extends Path ? Nothing : PathParams<Path>>,
  OutputOf<Q, Nothing>,
  OutputOf<H, Nothing>,
  OutputOf<B>,
  U,
  OutputOf<C, Nothing>
>;

/** The input and output of an operation as one caller knows them. */
export interface CallerSchemas {
  /** Same text, same schemas. */
  readonly key: string;
  make(): { readonly query?: JsonSchema; readonly body?: JsonSchema; readonly response?: JsonSchema };
}

/** One operation as data. Handlers are erased to one shape so that a table of routes has one type. */
export interface Route {
  readonly isRoute: true;
  readonly kind: 'answer' | 'stream';
  readonly method: HttpMethod;
  readonly path: string;
  readonly options: RouteOptions & Pick<StreamOptions, 'heartbeatMs' | 'method' | 'ends'>;
  // oxlint-disable-next-line typescript/no-explicit-any -- contravariant in the context; route.*() checked it against the schemas
  readonly handler: (context: HandlerContext<any, any, any, any, any, any>) => unknown;
  /**
   * Turns the handler's value into the text of the answer, after everything wrapped around the handler: sets headers and status that depend
   * on the value or its text (ETag, 304). Null sends no body. Not part of the options: wrapping a route keeps it.
   */
  readonly finish?: (context: HandlerContext, value: unknown, serialize: (value: unknown) => string) => string | null;
  /**
   * What decides which parts of the answer this caller sees, besides its scopes: a response is sent again only where it is the same. Asked
   * with every idempotent or cached request, before the handler.
   */
  readonly audience?: (context: HandlerContext) => string | Promise<string>;
  /** The tables that its responses are made of, for caches; undefined where that cannot be told. */
  readonly tables?: () => readonly string[] | undefined;
  /** The same address as a stream, for callers that accept `text/event-stream`. */
  readonly live?: LiveRoute;
  readonly news?: RouteNews;
  /** Requests with an idempotency key run in a transaction; others open their own. */
  readonly isAtomicWithKey?: boolean;
  /** The handler calls another route, which notices the repetition of an idempotency key. */
  readonly passesKey?: boolean;
  /** Honors idempotency keys where the complete permission excludes anonymous callers; `options.idempotent` wins. */
  readonly takesKeys?: boolean;
  /** A POST that only reads: an idempotency key is ignored there, as with GET and QUERY. */
  readonly isRead?: boolean;
  /** Cookies do not authenticate its callers. */
  readonly ignoresCookies?: boolean;
  /** The handler, or the calls that it makes, reject a caller whose budget is spent: `exchange.spentBudget`. For mcp(). */
  readonly respondsToThrottles?: boolean;
  /** What the caller of an exchange may send and gets, where that differs between callers. For mcp(). */
  readonly schemasFor?: (exchange: object) => Promise<CallerSchemas>;
  /** The handler is the toolkit's own, and nothing is wrapped around it: no application code can catch what it throws and go on. */
  readonly isUnwrapped?: boolean;
  /** What is wrapped around the handler is around its stream, too. */
  readonly isStreamWrapped?: boolean;
}

type Verb = <
  const Path extends string,
  P extends MaybeSchema = undefined,
  Q extends MaybeSchema = undefined,
  H extends MaybeSchema = undefined,
  B extends MaybeSchema = undefined,
  R extends MaybeSchema = undefined,
  U extends User | null = User | null,
  O extends AnyOperation | undefined = undefined,
  C extends MaybeSchema = undefined,
>(
  path: Path,
  options: RequiresPermission<U> & RouteSettings<P, Q, H, B, R, U, C> & OperationOption<O, R>,
  ...handler: HandlerArgument<NoInfer<O>, Path, P, Q, H, B, R, U, C>
) => Route;

type BodylessVerb = <
  const Path extends string,
  P extends MaybeSchema = undefined,
  Q extends MaybeSchema = undefined,
  H extends MaybeSchema = undefined,
  R extends MaybeSchema = undefined,
  U extends User | null = User | null,
  O extends AnyOperation | undefined = undefined,
  C extends MaybeSchema = undefined,
>(
  path: Path,
  options: RequiresPermission<U> & RouteSettings<P, Q, H, undefined, R, U, C> & OperationOption<O, R>,
  ...handler: HandlerArgument<NoInfer<O>, Path, P, Q, H, undefined, R, U, C>
) => Route;

type StreamVerb = <
  const Path extends string,
  P extends MaybeSchema = undefined,
  Q extends MaybeSchema = undefined,
  H extends MaybeSchema = undefined,
  B extends MaybeSchema = undefined,
  R extends MaybeSchema = undefined,
  U extends User | null = User | null,
>(
  path: Path,
  options: RequiresPermission<U> & StreamSettings<P, Q, H, B, R, U>,
  handler: (context: ContextOf<Path, P, Q, H, B, U, undefined>) => AsyncIterable<ServerSentEvent<R extends Schema ? AnswerOf<R> : unknown>>,
) => Route;

function verb(method: HttpMethod): Verb {
  const declare = (path: string, options: RouteOptions & { readonly command?: AnyOperation }, handler?: Route['handler']): Route => {
    // From JavaScript either may be missing; start-up says so.
    if (handler !== undefined || options?.command === undefined)
      return { isRoute: true, kind: 'answer', method, path, options, handler: handler as Route['handler'] };
    const { command, ...rest } = options;
    const part = method === 'GET' || method === 'DELETE' ? 'query' : 'body';
    return {
      isRoute: true,
      kind: 'answer',
      method,
      path,
      options: { ...rest, [part]: command.schema },
      handler: (context) => command.handle(context, context[part]),
    };
  };
  return declare as Verb;
}

const stream: StreamVerb = (path, options, handler) => ({
  isRoute: true,
  kind: 'stream',
  // What is no options object is reported with the other faults of the route.
  method: (options as Partial<typeof options> | null | undefined)?.method ?? 'GET',
  path,
  options: options as unknown as Route['options'],
  handler,
});

const get: BodylessVerb = verb('GET');

/**
 * Declares operations as class fields of a controller.
 *
 * @example
 * ```ts
 * class OrderController extends Controller {
 *   create = route.post('/', { permission: isAuthenticated, body: OrderInput, response: OrderOut, status: 201 }, ({ db, body, user }) =>
 *     insert(db, orders, { ...body, owner_id: user.id }),
 *   );
 * }
 * ```
 */
export const route = {
  /** Reads: `read = route.get('/:id', { permission: isAuthenticated, response: OrderOut }, ({ params }) => …)`. It has no body. */
  get,
  /** Creates, or runs an operation: `create = route.post('/', { permission, body: OrderInput, response: OrderOut, status: 201 }, ({ body }) => …)`. */
  post: verb('POST'),
  /** Replaces what is at the URL: `replace = route.put('/:id', { permission, body: OrderInput, response: OrderOut }, ({ params, body }) => …)`. */
  put: verb('PUT'),
  /** Changes some fields of what is at the URL; fields that the body leaves out stay. */
  patch: verb('PATCH'),
  /** Deletes what is at the URL: `remove = route.delete('/:id', { permission }, ({ params }) => …)`. Without a response schema it returns 204. */
  delete: verb('DELETE'),
  /** RFC 10008: safe like GET, with a body; counts as a read for permissions and CSRF. */
  query: verb('QUERY'),
  /** Server-sent events from an async generator. */
  stream,
} as const;

export function isRoute(value: unknown): value is Route {
  return typeof value === 'object' && value !== null && (value as Partial<Route>).isRoute === true;
}
