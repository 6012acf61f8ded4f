import type { App } from '../../app/declare/module.ts';
import type { Fault } from '../../options/fault.ts';
import type { User } from '../../auth/people/principal.ts';
import type { Db } from '../../db/engine/db.ts';
import type { Model } from '../../db/declare/model.ts';
import type { Encrypted } from '../../db/declare/encrypted-column.ts';
import type { Columns, InputOf, InsertOf, PatchOf, RowOf, UpdateOf } from '../../db/declare/rows.ts';
import type { Where } from '../../db/sql/where/where.ts';
import type { ControllerBase, controllerOptionNames } from '../../http/compile/controller.ts';
import type { HandlerContext } from '../../http/declare/handler-context.ts';
import type { Route, RouteFacts } from '../../http/declare/route.ts';
import type { WrapOptions } from '../../http/declare/route-around.ts';
import type { Schema } from '../../http/declare/schema.ts';
import type { Permission } from '../../permissions/permission.ts';
import type { ExportOptions, FileFormat } from './file-options.ts';
import type { BulkOptions } from './bulk-options.ts';
import type { ImportOptions } from './file-options.ts';
import type { NamesChecked, UnknownColumn } from '../declare/checked-where.ts';
import type { CustomFilter } from '../declare/filter.ts';
import type { LimitOptions } from '../declare/limits.ts';
import type { ListPage } from './list-page.ts';
import type { PageOptions } from './page-options.ts';
import type { StatsOptions } from './stats-options.ts';
import type { Paths, PathValue, ToOneNames } from '../declare/paths.ts';
import type { Name, Relations } from '../declare/relation.ts';
import type { RelatedOf, Resource } from '../declare/resource.ts';
import type { SearchBackend } from '../declare/search-backend.ts';

/** Shown by the compiler where `CrudController()` is given a model: declare `resource(model, { … })`. No value has this type. */
export interface UseResourceOfTheModel {
  readonly isResource: never;
}

/** Shown by the compiler where `filters` is a list of columns: write `{ status: ['eq'] }`. No value has this type. */
export interface FiltersAreOperatorsByColumn {
  readonly operatorsAreMissing: never;
}

type Flat<X> = { [K in keyof X]: X[K] } & {};
type Without<X, K> = { [P in keyof X as P extends K ? never : P]: X[P] };
/** The operators that filters of a value of this type may offer. Written out, so that an error lists them. */
type OperatorOf<V> = [V] extends [string]
  ? string extends V
    ? 'eq' | 'ne' | 'in' | 'nin' | 'isnull' | 'gt' | 'gte' | 'lt' | 'lte' | 'contains' | 'starts' | 'ends'
    : 'eq' | 'ne' | 'in' | 'nin' | 'isnull' | 'gt' | 'gte' | 'lt' | 'lte'
  : [V] extends [number | bigint | Date]
    ? 'eq' | 'ne' | 'in' | 'nin' | 'isnull' | 'gt' | 'gte' | 'lt' | 'lte'
    : [V] extends [boolean | Uint8Array]
      ? 'eq' | 'ne' | 'in' | 'nin' | 'isnull'
      : [V] extends [Encrypted<unknown>]
        ? 'eq' | 'in' | 'isnull'
        : 'isnull';

/** `X` has the computed fields: those that are derived can be filtered. */
type OperatorList<C extends Columns, R, K, X> =
  K extends Name<C>
    ? readonly OperatorOf<NonNullable<RowOf<C>[K]>>[]
    : K extends Paths<R>
      ? readonly OperatorOf<NonNullable<PathValue<R, K>>>[]
      : K extends X
        ? readonly ('eq' | 'ne' | 'in' | 'nin')[]
        : K extends `${number}`
          ? FiltersAreOperatorsByColumn
          : UnknownColumn<K>;
/** `W` is the condition of a custom filter; unknown where a list of operators is given. */
type FilterOf<C extends Columns, R extends Relations, K, W, X> = unknown extends W
  ? OperatorList<C, R, K, X>
  : NamesChecked<W, C, R> & CustomFilter<W> & CustomFilter<Where<C, RelatedOf<R>>>;

export type Operation = 'list' | 'query' | 'retrieve' | 'create' | 'update' | 'partialUpdate' | 'destroy';

/** Facts of one operation; a permission and errors are added. `false` removes the operation. */
export type OperationOptions = Partial<
  RouteFacts & {
    readonly permission: Permission;
    readonly path: string;
    /** The name of the route field, and so of the operation id: `{ retrieve: { field: 'read' } }`. Default: the name of the operation. */
    readonly field: string;
  }
>;
/** Operations that exist only where an option declares them. */
export type DeclaredOperation = 'export' | 'import' | 'stats' | 'meta' | 'restore' | 'bulkCreate' | 'bulkUpdate' | 'bulkDestroy';
/** Shown by the compiler for settings of an operation that does not exist. No value has this type. */
export interface UnknownOperation<N> {
  readonly unknownOperation: N;
}
/** The operation that does to many rows what a transition or an action does to one. */
type SelectionField<T> = `${Extract<T, string>}Many` | `${Extract<T, string>}_many`;
/** `N` keeps which operations are `false`: they do not exist in the type of the controller. */
type OperationsOf<N, T> = {
  readonly [K in keyof N]: K extends Operation | DeclaredOperation | T | SelectionField<T>
    ? N[K] extends false
      ? N[K]
      : OperationOptions
    : UnknownOperation<K>;
} & { readonly [K in Operation | DeclaredOperation]?: unknown };
type FieldOf<O, K> = O extends false ? never : O extends { readonly field: infer F extends string } ? F : K;
/** The route fields of the operations that are not `false`. */
export type Offered<N, X = never> = { [K in Operation | Extract<X, string>]: K extends keyof N ? FieldOf<N[K], K> : K }[
  | Operation
  | Extract<X, string>];
/** The operations that options ask for. */
export type Extra<Q, B> =
  | (Q extends true ? 'restore' : never)
  | (B extends { readonly create: true } ? 'bulkCreate' : never)
  | (B extends { readonly update: true } ? 'bulkUpdate' : never)
  | (B extends { readonly destroy: true } ? 'bulkDestroy' : never);

export interface CrudOptions<
  C extends Columns,
  R extends Relations,
  U extends User | null,
  N,
  F,
  Q = boolean,
  B = BulkOptions,
  X extends string = string,
  T = string,
> {
  /** Part of every operation; nothing below can remove it. */
  readonly permission: Permission<U>;
  /** Serves the rows of one of the resource's `audiences`, such as `staff`. Default: those of its `tenant`, `owner`, `rows` and `access`. */
  readonly audience?: string;
  /** The database's alias, where the rows of this controller are in another one than the resource says. Its relations move with it. */
  readonly using?: string;
  /**
   * A replica of the database, by its name in `database` of `createApp()`: lists, statistics and exports are read there while it is fresh, and where
   * the rows that a caller sees are decided by their own columns. Records by their key, writes and rights stay with the primary.
   */
  readonly readFrom?: string;
  /** `orders` gives `orders:read` and `orders:write`. */
  readonly scope?:
    | string
    | {
        /** Of operations that read. */
        readonly read: string;
        /** Of operations that write. */
        readonly write: string;
      };
  /** The column in the address. Default: the primary key. Must be unique. */
  readonly lookup?: Name<C>;
  /** Mounted below a parent: `/projects/:project_id/tasks`. */
  readonly parent?: {
    /** The to-one relation that leads to the parent: `project`. */
    readonly relation: ToOneNames<R>;
    /** The parameter of the path. Default: the column of the relation. */
    readonly param?: string;
  };
  /** Columns a client may send; narrower than the resource's. */
  readonly input?: readonly Name<C>[];
  /** Columns and computed fields shown; narrower than the resource's. */
  readonly output?: readonly (Name<C> | X)[];
  /** Filters of the list: operators by column, path or derived state, or `filter(schema, where)`: `{ status: ['eq', 'in'], 'customer.name': ['contains'] }`. */
  readonly filters?: { readonly [K in keyof F]: FilterOf<C, R, K, F[K], X> } & { readonly [K in Name<C> | Paths<R> | X]?: unknown };
  /** Columns that `search` looks into, also of to-one relations (`customer.name`), or how it finds rows: `fullText({ columns: ['title'] })`. */
  readonly search?: readonly (Name<C> | Paths<R>)[] | SearchBackend<Name<C>>;
  /** Columns that a client may sort by, and the order without `ordering`: `{ by: ['total'], default: ['-total'] }`. */
  readonly ordering?: {
    /** Columns that a client may sort by. */
    readonly by: readonly Name<C>[];
    /** The order without `ordering`; a leading minus means descending. Default: the primary key. */
    readonly default?: readonly (Name<C> | `-${Name<C>}`)[];
  };
  /** `false` offers no `?fields=`. */
  readonly sparse?: false;
  /** Relations that a client may include with `?expand=`: `['customer', 'items.product']`. */
  readonly expand?: readonly (Extract<keyof R, string> | `${Extract<keyof R, string>}.${string}`)[];
  /** Sizes, style and count of pages. */
  readonly page?: Partial<PageOptions>;
  /** How much one request may ask for: `{ filters: 60, listValues: 500 }`. What is not said keeps its default. */
  readonly limits?: LimitOptions;
  /** `required`: changes without `If-Match` are refused (428). `false`: no tags. Default: `optional`. */
  readonly etag?: 'required' | 'optional' | false;
  /** QUERY with a filter tree in the body, and its alias `POST /query`; true when filters exist. */
  readonly queryMethod?: boolean;
  /** `GET /export`: `['csv', 'jsonl']`, the first is the default. */
  readonly export?: readonly FileFormat[] | ExportOptions;
  /** `POST /:id/restore`, for a resource that soft-deletes; who may use it may list the deleted rows with `?deleted=only`. */
  readonly restore?: Q;
  /** Whether POST and DELETE operations take an `Idempotency-Key`: default `optional`, where callers are known. Never required for DELETE. */
  readonly idempotency?: 'optional' | 'required' | false;
  /** `POST /bulk`, `/bulk-update` and `/bulk-delete`: many rows in one transaction. */
  readonly bulk?: B & BulkOptions;
  /** `POST /import`: all rows of a file, or none. */
  readonly import?: ImportOptions<Name<C>>;
  /** `GET /stats`: counts, sums and means by groups. */
  readonly stats?: StatsOptions<Name<C>, X>;
  /** `GET /meta`: what a caller may see, send and do. */
  readonly meta?: boolean;
  /** The list is also a stream of its changes, for callers that send `Accept: text/event-stream`. */
  readonly live?: boolean;
  /** Fields that the stream leaves out, because they depend on other records: without them the app does not start (E035). */
  readonly liveWithout?: readonly (Name<C> | X)[];
  /** Settings of single operations, such as `{ destroy: { permission: isStaff } }`; `false` removes one. A permission is added. */
  readonly operations?: OperationsOf<N, T>;
}

/** The options with every type erased. */
// oxlint-disable typescript/no-explicit-any -- erased on purpose
export interface AnyCrudOptions extends Omit<
  CrudOptions<any, any, any, any, any>,
  'filters' | 'operations' | 'search' | 'expand' | 'parent'
> {
  readonly filters?: Readonly<Record<string, unknown>>;
  readonly search?: readonly string[] | SearchBackend;
  readonly expand?: readonly string[];
  readonly parent?: { readonly relation: string; readonly param?: string };
  readonly operations?: Readonly<Record<string, false | OperationOptions | undefined>>;
}
// oxlint-enable typescript/no-explicit-any

type Json = Record<string, unknown>;
interface Shapes<C extends Columns, I> {
  readonly list: [object, Readonly<Record<string, string | string[]>>, undefined, ListPage];
  readonly query: [object, Readonly<Record<string, string | string[]>>, Json, ListPage];
  readonly retrieve: [{ readonly id: string }, Readonly<Record<string, string | string[]>>, undefined, Json];
  readonly create: [object, Readonly<Record<string, string | string[]>>, Flat<Pick<InputOf<C>, Extract<I, keyof InputOf<C>>>>, Json];
  readonly update: [
    { readonly id: string },
    Readonly<Record<string, string | string[]>>,
    Flat<Pick<InputOf<C>, Extract<I, keyof InputOf<C>>>>,
    Json,
  ];
  readonly partialUpdate: [
    { readonly id: string },
    Readonly<Record<string, string | string[]>>,
    Flat<Pick<PatchOf<C>, Extract<I, keyof PatchOf<C>>>>,
    Json,
  ];
  readonly destroy: [{ readonly id: string }, object, undefined, undefined];
}
type ShapeOf<C extends Columns, I, K> = K extends Operation ? Shapes<C, I>[K] : [{ readonly id: string }, object, unknown, Json];

/** What a custom route writes with: the pipeline of the generic operations. */
export interface RowWriter<C extends Columns, P, T extends string> {
  create(values: Flat<Without<InsertOf<C>, P>>): Promise<RowOf<C>>;
  update(key: string, changes: Flat<Without<UpdateOf<C>, P>>): Promise<RowOf<C>>;
  destroy(key: string): Promise<void>;
  transition(key: string, name: T, input?: unknown): Promise<RowOf<C>>;
  /** Runs one of the resource's `actions` on the row, and returns the row. */
  action(key: string, name: T, input?: unknown): Promise<RowOf<C>>;
  /** Brings back a row that was deleted softly, and those that went with it. */
  restore(key: string): Promise<RowOf<C>>;
}

// oxlint-disable-next-line typescript/no-explicit-any -- a handler of whatever input
type AnyContext = HandlerContext<any, any, any, any, any>;

/** What the generated base gives a subclass: one route field per operation, and the policy for routes of its own. */
export type CrudBase<C extends Columns, U extends User | null, N extends string, T extends string, I, P> = ControllerBase & {
  readonly [K in N | T | (string extends T ? never : [T] extends [never] ? never : 'transitions')]: Route;
} & { readonly [K in DeclaredOperation]?: Route } & {
  /** Overrides an operation: `override list = this.wrap('list', { summary: 'Yours' }, (context, next) => next())`. A permission is added. */
  wrap<K extends N | T | DeclaredOperation>(
    operation: K,
    facts: WrapOptions,
    handler?: (
      context: HandlerContext<ShapeOf<C, I, K>[0], ShapeOf<C, I, K>[1], unknown, ShapeOf<C, I, K>[2], U>,
      next: () => Promise<ShapeOf<C, I, K>[3]>,
    ) => unknown,
  ): Route;
  /** The schema of `/:id`. */
  readonly keyParams: Schema<{ id: string }>;
  /** The row with this key among those the caller sees below the parent in the address, or 404. */
  find(context: AnyContext, key: string): Promise<RowOf<C>>;
  /** Rows among those the caller sees, below the parent in the address; 404 where the caller does not see the parent. */
  rows(context: AnyContext, where?: Where<C>, limit?: number): Promise<RowOf<C>[]>;
  /** Writes through the pipeline, in a savepoint of the transaction if one is given. */
  write(context: AnyContext, tx?: Db): RowWriter<C, P, T>;
  /** The response schema of a route of the controller's own that shows values once: `once: { key: { on: ['rotate'] } }` and `onceSchema('rotate')`. */
  onceSchema(field: string): Schema<Json>;
  /** The row as this caller may see it, with values that only this response shows. They are stored for no idempotency key, and no cache has them. */
  presentOnce(context: AnyContext, row: RowOf<C>, values: Readonly<Record<string, string>>): Promise<Json>;
  /**
   * The routes of another controller below the records of this one, to be made fields: `readonly #lines = this.below('/:order_id/lines', new Lines())`
   * and `lines = this.#lines['list']`. That controller has `parent`.
   */
  below(path: string, other: ControllerBase): Readonly<Record<string, Route>>;
  /** The tenant that requests act for, decided by the server; null for none. Where a subclass has it, it takes the place of the app's `tenant`. */
  tenantOf?(context: AnyContext): string | null | Promise<string | null>;
  /** A row, or several, as this caller may see them. */
  present(context: AnyContext, row: RowOf<C>): Promise<Json>;
  present(context: AnyContext, rows: readonly RowOf<C>[]): Promise<Json[]>;
  /** What is wrong with the declaration: a subclass with checks of its own adds them to these. */
  faults(app: App): readonly Fault[];
  /** As `faults`, for checks that need the databases. */
  databaseFaults(app: App): Promise<readonly Fault[]>;
};

type Statics = { readonly [K in (typeof controllerOptionNames)[number]]?: (typeof ControllerBase)[K] };

export interface CrudClass<C extends Columns, U extends User | null, N extends string, T extends string, I, P> extends Statics {
  new (): CrudBase<C, U, N, T, I, P>;
  readonly crudResource: Resource<C>;
  readonly model: Model<C>;
}
