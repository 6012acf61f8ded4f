import type { App } from '../../app/declare/module.ts';
import type { Principal, User } from '../../auth/people/principal.ts';
import type { Db } from '../../db/engine/db.ts';
import type { Model } from '../../db/declare/model.ts';
import type { Columns, InputOf, InsertOf, PatchOf, RowOf, UpdateOf } from '../../db/declare/rows.ts';
import type { Where } from '../../db/sql/where/where.ts';
import type { ServiceScope } from '../../di/container.ts';
import type { ErrorDefinition } from '../../errors/catalog.ts';
import type { OutputOf, Schema } from '../../http/declare/schema.ts';
import type { FieldError } from '../../errors/kit-error.ts';
import type { Fault } from '../../options/fault.ts';
import type { Permission } from '../../permissions/permission.ts';
import type { ComputedField, ComputedFields, ShownColumns } from './computed-field.ts';
import type { CrudCaller } from './crud-caller.ts';
import type { EventTypesOf } from './event-types.ts';
import type { FieldRule, UseVisibleToOrWritableBy } from './field-rule.ts';
import type { NestedOptions, NestedRelation } from './nested-options.ts';
import type { NamesChecked, NoOtherValue } from './checked-where.ts';
import type { KnownColumns, Name, Relations, ToMany, ToOne } from './relation.ts';
import type { RowAccess } from './row-access.ts';
import type { OwnerRule, TenantRule } from './scope-rule.ts';

type Flat<X> = { [K in keyof X]: X[K] } & {};
type Without<X, K> = { [P in keyof X as P extends K ? never : P]: X[P] };

/** Everything a hook may use: one transaction, the caller, the services of the request. */
export interface WriteContext<U extends User | null = User | null> {
  readonly tx: Db;
  readonly user: U;
  readonly principal: Principal | null;
  readonly tenant: string | null;
  readonly services: ServiceScope;
  readonly requestId: string | null;
  readonly now: Date;
  readonly caller: CrudCaller;
}

/** How a change came about. */
export type Via = 'single' | 'bulk' | 'import' | 'nested' | 'admin' | 'cascade';

/** One changed row, after its write and inside its transaction. */
export interface Change<C extends Columns = Columns, T extends string = string> extends WriteContext {
  readonly operation: 'create' | 'update' | 'destroy' | 'restore' | `transition:${T}` | `action:${T}`;
  readonly via: Via;
  /** Null on create. */
  readonly before: RowOf<C> | null;
  /** Null once the row is gone. */
  readonly after: RowOf<C> | null;
  /** Columns whose value differs, without those that every write moves (timestamps, version, user stamps). */
  readonly changed: readonly Name<C>[];
}

/** The columns of the models that relations lead to. */
export type RelatedOf<R extends Relations> = {
  // Relations that are not known by name: none, or every name would be one.
  readonly [K in keyof R as string extends K ? never : K]: R[K] extends ToOne<infer C> ? C : R[K] extends ToMany<infer C> ? C : never;
};

export type ToManyNames<R> = { [K in Extract<keyof R, string>]: R[K] extends { readonly kind: 'many' } ? K : never }[Extract<
  keyof R,
  string
>];

/** The audience of the admin site. */
export const STAFF = 'staff';

/** What the rows of an audience are asked for. */
export interface AskedRows {
  /** For reads that the rule needs. */
  readonly db: Db;
  /** The filters that are set, by their names: of a list of the admin site. */
  readonly filters: Readonly<Record<string, string>>;
  /** The keys of the rows that are read or written. Null: those of a list, or a new row. */
  readonly keys: readonly unknown[] | null;
}

/** The rows of an audience. */
export interface AudienceRule<W = Where> {
  /**
   * The rows that its callers can see, whoever owns them; `true` for all. A function decides it for each request. It may look at what is asked for, where no
   * condition can say it for all rows: what it returns has to hold for these.
   */
  readonly rows: true | W | ((caller: CrudCaller<User>, asked: AskedRows) => boolean | W | Promise<boolean | W>);
  /** `all`: rows of every tenant. Default: those of the tenant that the caller acts for. */
  readonly tenant?: 'all';
  /** `false`: its callers see the rows without a grant. Default: with `access`, only the rows that they own or were granted. */
  readonly access?: false;
}

/** What is announced about a change. Null announces nothing. */
export interface ChangeEvent {
  /** `order.shipped`. */
  readonly type: string;
  /** What receivers get as `data`. */
  readonly data: object;
  /** Whose endpoints get the event. */
  readonly audience: {
    /** Endpoints of this user. */
    readonly owner?: string;
    /** Endpoints of this tenant. */
    readonly tenantKey?: string;
    /** Endpoints of everyone. */
    readonly broadcast?: true;
  };
}

type Input<C extends Columns, I> = Flat<Pick<InputOf<C>, Extract<I, keyof InputOf<C>>>>;
type Patch<C extends Columns, I> = Flat<Pick<PatchOf<C>, Extract<I, keyof PatchOf<C>>>>;

/** A value that a response shows once, beside the row. */
export interface OnceValue {
  /** `create`, transitions, actions on one record, and fields of controllers with routes of their own. */
  readonly on: readonly string[];
  /** For the OpenAPI document. */
  readonly description?: string;
  /** The response has null where the hook does not give the value. Default: an error. */
  readonly nullable?: true;
}

/** Bodies that are not made of columns. */
export interface BodySchemas {
  /** The body of POST. */
  readonly create: Schema;
  /** Of PATCH, and of PUT, which then keeps what is left out, too. */
  readonly update: Schema;
}

/** Gives a value that the response shows once; its name is in `once` of the resource. */
export type GiveOnce = (name: string, value: string) => void;

/** A hook that writes a row returns it: that of `next`, or its own. Errors of the compiler have this name. */
type HookThatReturnsTheRow<C extends Columns, Context, Next> = (context: Context, next: Next) => Promise<RowOf<C>>;

/** One hook per verb, around the write and inside its transaction. Not calling `next` means not writing. */
export interface Hooks<C extends Columns, P, I> {
  /** Around an insert: `next(values)` writes the row. */
  readonly create?: HookThatReturnsTheRow<
    C,
    WriteContext & { readonly input: Input<C, I>; readonly once: GiveOnce },
    (values: Flat<Without<InsertOf<C>, P>>) => Promise<RowOf<C>>
  >;
  /** Around an update: `next(changes)` writes the row. */
  readonly update?: HookThatReturnsTheRow<
    C,
    WriteContext & { readonly before: RowOf<C>; readonly input: Patch<C, I> },
    (changes: Flat<Without<UpdateOf<C>, P>>) => Promise<RowOf<C>>
  >;
  /** Around a deletion: `next()` deletes the row. */
  readonly destroy?: (context: WriteContext & { readonly before: RowOf<C> }, next: () => Promise<void>) => Promise<void>;
  /** Around a transition: `next(changes)` writes the new state, and these columns. */
  readonly transition?: HookThatReturnsTheRow<
    C,
    WriteContext & { readonly name: string; readonly before: RowOf<C>; readonly input: unknown; readonly once: GiveOnce },
    (changes?: Flat<Without<UpdateOf<C>, P>>) => Promise<RowOf<C>>
  >;
}

/** What `validate` of a resource gets. */
export interface RowToValidate<C extends Columns = Columns, I = string> {
  /** The values that are to be written. Where the schema refuses others, those that it accepts. */
  readonly input: Patch<C, I>;
  /** The row as it is; null for one that is made. */
  readonly before: RowOf<C> | null;
  readonly caller: CrudCaller;
  /** For reads that the rule needs; the transaction of the write, where it has begun. */
  readonly db: Db;
}

/** Shown by the compiler for transitions of a resource without `state`, the column that they change. No value has this type. */
export interface SetTheStateOption {
  readonly stateIsMissing: never;
}

type StateOf<C extends Columns, S> = [S] extends [never] ? SetTheStateOption : RowOf<C>[Extract<S, keyof C>];

/** A change of the state column: `pay: { from: ['open'], to: 'paid' }`. */
export interface Transition<C extends Columns, S> {
  /** States in which the transition is possible. */
  readonly from: readonly StateOf<C, S>[];
  /** The state after the transition. */
  readonly to: StateOf<C, S>;
  /** Added to the controller's. */
  readonly permission?: Permission;
  /** The body it takes; the hook gets it. */
  readonly input?: Schema;
  /** True, false, or the sentence that tells the caller why not. */
  readonly guard?: (row: RowOf<C>, caller: CrudCaller) => boolean | string;
  /** `selection`: also `POST /actions/<name>`, for many rows, with a dry run. Default: `record`. */
  readonly on?: 'record' | 'selection';
  /** Of the route, for the OpenAPI document. */
  readonly summary?: string;
}

/** What is done to a row besides changing its columns, a route of its own: `remind: { run: ({ row, tx }) => sendReminder(tx, row) }`. */
export interface Action<C extends Columns, P, S = unknown> {
  /** `record`: `POST /:id/<name>`. `selection`: also `POST /actions/<name>`, for many rows, with a dry run. Default: `record`. */
  readonly on?: 'record' | 'selection';
  /** The body it takes. */
  readonly input?: S & Schema;
  /** Added to the controller's. */
  readonly permission?: Permission;
  /** Only controllers of this audience offer it. Default: every controller of the resource. */
  readonly audience?: string;
  /** `outside`: it does something that a rollback does not undo, such as a call to another service. It has no dry run then. */
  readonly effects?: 'outside';
  /** `false`: the row is read without a lock, and `run` locks what it writes, such as the parent of the row before the row. */
  readonly lock?: false;
  /** The schema of what `run` returns. Default: the response is the row. */
  readonly response?: Schema;
  /** Of `POST /:id/<name>`. Default: 200. */
  readonly status?: number;
  /** Errors that `run` throws, for the OpenAPI document. */
  readonly raises?: readonly ErrorDefinition[];
  /** Of the route, for the OpenAPI document. */
  readonly summary?: string;
  /**
   * Runs in the transaction, with the row locked unless `lock` is false. `next(changes)` writes columns of the row; code that calls a function of a module instead writes with
   * `tx`. It may run again after a conflict: what cannot be undone belongs into `tx.afterCommit()`.
   */
  readonly run: (
    context: WriteContext & { readonly row: RowOf<C>; readonly input: ActionInput<S>; readonly once: GiveOnce },
    next: (changes: Flat<Without<UpdateOf<C>, P>>) => Promise<RowOf<C>>,
  ) => unknown;
}

type ActionInput<S> = S extends Schema ? OutputOf<S> : undefined;

export interface ResourceOptions<
  C extends Columns,
  R extends Relations,
  O extends Name<C>,
  N extends Name<C>,
  V extends Name<C>,
  I extends Name<C>,
  S extends Name<C>,
  T extends string,
  W,
  Q = Readonly<Record<string, Name<C>>>,
  Y = Readonly<Record<string, Schema>>,
  Z = Readonly<Record<string, Name<C>>>,
  A = Readonly<Record<string, Schema>>,
> {
  /** In events, audit entries and documents. Default: the singular of the table. */
  readonly name?: string;
  /** Rows of the caller's tenant only; set on create, never taken from a client. */
  readonly tenant?: N | TenantRule<N>;
  /** Rows of the caller only; set on create, never taken from a client. */
  readonly owner?: O | OwnerRule<O>;
  /** Which rows a caller sees, as data. Adds to `tenant` and `owner`. */
  readonly rows?: NamesChecked<W, C, R> & ((caller: CrudCaller<User>) => W | Promise<W> | (Where<C, RelatedOf<R>> & NoOtherValue));
  /** Rows that anonymous callers can see. Default: none. */
  readonly anonymous?: Where<C> | boolean;
  /** Rows by grants, joined to `owner` by OR. */
  readonly access?: RowAccess;
  /** Says on purpose: every caller the permission admits sees every row. */
  readonly unscoped?: true;
  /**
   * `trigger`: for rows that programs, workers or SQL write without the resource. While a controller of the app has `live: true`, the database writes their changes
   * to the change log itself: `kit migrate` creates the triggers, and removes them. Default: the resource writes them, and others call `touched()`.
   */
  readonly changes?: 'trigger';
  /** The column of `versioned()`: ETag and If-Match. */
  readonly version?: V;
  /**
   * DELETE marks the row, and the rows of these to-many relations, instead of removing them. True for a model with the columns of
   * `softDelete()`; `false` removes rows all the same.
   */
  readonly softDelete?:
    | boolean
    | {
        /** To-many relations whose rows are deleted and restored with the row. */
        readonly cascade?: readonly ToManyNames<R>[];
      };
  /** Other models that rows refer to, or are referred to by: `{ customer: one(() => customers, 'customer_id') }`. */
  readonly relations?: KnownColumns<NoInfer<R>, C> & R;
  /** Columns a client may send. Default: every writable one that is not hidden. */
  readonly input?: readonly I[];
  /** Never on the wire, on no edge. */
  readonly hidden?: readonly Name<C>[];
  /** Who can see and write single columns: `{ margin: visibleTo(isStaff), discount: writableBy(isStaff) }`. */
  readonly fields?: { readonly [K in Name<C>]?: FieldRule | UseVisibleToOrWritableBy };
  /** Fields computed from columns when a row is shown: `{ overdue: { requires: ['due_at'], response: z.boolean(), value: ({ due_at }, { now }) => … } }`. */
  readonly computed?: ComputedFields<C, R, Q, Y>;
  /**
   * Columns that are shown in another form than they are stored in, in their own place: `{ input: { requires: [], response, value: ({ input }) => parse(input) } }`.
   * Filters and orderings compare what is stored; clients send it; audit entries have it.
   */
  readonly shown?: ShownColumns<C, Z>;
  /** The column of the state that transitions change. */
  readonly state?: S;
  /** Named changes of `state`, each a route of its own: `{ pay: { from: ['open'], to: 'paid' } }`. */
  readonly transitions?: { readonly [K in T]: Transition<C, NoInfer<S>> };
  /** What callers can do to rows besides changing columns, each a route of its own: `{ remind: { on: 'selection', run: … } }`. */
  readonly actions?: { readonly [K in keyof A]: Action<C, O | N | V, A[K]> };
  /** Rows of to-many relations that are written with their parent: `items: { input: ['sku', 'amount'], missing: 'delete' }`. */
  readonly nested?: NestedOptions<R>;
  /** Code around each write, in its transaction: `{ create: async ({ input, tx }, next) => next(input) }`. */
  readonly hooks?: Hooks<C, O | N | V, NoInfer<I>>;
  /**
   * `verbs`: the hooks write, by functions that do so without this resource, too. These record and announce the change: the resource does neither, and its
   * hooks do not call `next`. Every operation that writes needs a hook.
   */
  readonly writes?: 'verbs';
  /**
   * With `writes: 'verbs'`: what clients send, where it is not columns of the table, such as settings that the functions seal. `input` of the hooks and of
   * `validate` has the values that the schema returns. The resource takes no files, bulk writes or nested rows then.
   */
  readonly bodies?: BodySchemas;
  /**
   * Values that a response shows once, such as the secret of a new key, which is stored only as a hash: `{ key: { on: ['create', 'rotate'] } }`. The hook
   * gives them with `once('key', raw)`, a route of the controller's own with `this.presentOnce()`.
   */
  readonly once?: Readonly<Record<string, OnceValue>>;
  /**
   * What is wrong with the values of a row that is made or changed, beyond its columns: `[]`, or errors at `['body', 'scopes', 0]`. Reported with
   * the errors of the schema, on every path that writes rows.
   */
  readonly validate?: (row: RowToValidate<C, NoInfer<I>>) => readonly FieldError[] | Promise<readonly FieldError[]>;
  /** Called once per changed row, and per row that an action ran for, in the transaction. Throwing rolls everything back. */
  readonly onChange?: (change: Change<C, NoInfer<T>>) => unknown;
  /**
   * One audit entry per changed row; true when an audit module is installed. `reads`: also when one record is read, `exports`: when rows are exported, by
   * the API, agents and the admin site.
   */
  readonly audit?:
    | boolean
    | {
        /** True: reading a record is an entry, too. */
        readonly reads?: boolean;
        /** True: an export is an entry, too. */
        readonly exports?: boolean;
      };
  /** `order.created`, `.updated`, … by webhook, to the row's owner and tenant. `tenant`: to all endpoints of its tenant. A function returns the event. */
  readonly events?: boolean | 'tenant' | ((change: Change<C, NoInfer<T>>) => ChangeEvent | null);
  /**
   * Other rows for other callers, by name: `{ staff: { rows: true, tenant: 'all' }, team: { rows: true } }`. A controller serves one of them with its
   * option `audience`; the admin site serves `staff`. The audience's rule is in the place of `owner` and `rows`.
   */
  readonly audiences?: { readonly [audience: string]: AudienceRule<Where<C, RelatedOf<R>>> };
  /** Short for `audiences: { staff: … }`: the rows of the admin site. Without it the resource is not in the site. */
  readonly admin?: AudienceRule<Where<C, RelatedOf<R>>>;
  /** The 404 of a row that does not exist or that the caller cannot see: an error of your catalog. Default: `not_found`. */
  readonly missing?: ErrorDefinition;
  /** The database's alias. Default: `default`. */
  readonly using?: string;
}

/** The options with every type erased: what the code of this ring works with. */
export interface AnyResourceOptions extends Omit<
  // oxlint-disable-next-line typescript/no-explicit-any -- erased on purpose
  ResourceOptions<any, Relations, any, any, any, any, any, any, any>,
  'softDelete' | 'nested' | 'computed' | 'shown' | 'fields' | 'admin' | 'audiences' | 'actions'
> {
  readonly audiences?: Readonly<Record<string, AudienceRule>>;
  readonly actions?: Readonly<Record<string, unknown>>;
  readonly fields?: Readonly<Record<string, FieldRule | undefined>>;
  readonly computed?: Readonly<Record<string, ComputedField>>;
  readonly shown?: Readonly<Record<string, ComputedField>>;
  readonly nested?: Readonly<Record<string, NestedRelation | undefined>>;
  readonly softDelete?: boolean | { readonly cascade?: readonly string[] };
}

/** Whether a resource says which rows its callers see. One with `audiences` alone is for these. */
export function hasRowRule({ tenant, owner, rows, access, unscoped }: AnyResourceOptions): boolean {
  return unscoped === true || [tenant, owner, rows, access].some((rule) => rule !== undefined);
}

/** Which rows and fields of a model a caller may see and change, on every path that reaches them. */
export interface Resource<
  C extends Columns = Columns,
  R extends Relations = Relations,
  P extends string = string,
  I extends string = string,
  T extends string = string,
  X extends string = string,
> {
  readonly isResource: true;
  readonly name: string;
  readonly model: Model<C>;
  readonly options: AnyResourceOptions;
  readonly relations: R;
  /** The types of the events that `events: true` publishes: `orderResource.eventTypes.created` is `order.created`. */
  readonly eventTypes: EventTypesOf<T>;
  /** What is wrong with the resources of an app, this one's among them: once per app. */
  faults?(app: App): readonly Fault[];
  /** What it needs of the databases, which are open now. */
  databaseFaults?(app: App): Promise<readonly Fault[]>;
  /** In types only: the columns a policy sets, those a client may send, the transitions, the computed fields. */
  readonly types?: { readonly policy: P; readonly input: I; readonly transitions: T; readonly computed: X };
}

/** A resource whatever its types are. */
// oxlint-disable-next-line typescript/no-explicit-any -- see AnyResourceOptions
export type AnyResource = Resource<any, any, any, any, any, any>;

export function isResource(value: unknown): value is AnyResource {
  return typeof value === 'object' && value !== null && (value as Partial<AnyResource>).isResource === true;
}

export type TransitionInput<S> = S extends Schema ? OutputOf<S> : undefined;
