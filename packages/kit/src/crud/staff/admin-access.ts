import type { App } from '../../app/declare/module.ts';
import type { Db } from '../../db/engine/db.ts';
import type { Model } from '../../db/declare/model.ts';
import type { Where } from '../../db/sql/where/where.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { asCaller, type CallerInTransaction, expandingOperationsOf, operationsOf, requestOf } from '../serve/crud-of.ts';
import { limits, usualLimits } from '../declare/limits.ts';
import { type StaffFollowing, staffNews } from './staff-news.ts';
import { conditions, unitFor } from '../read/list.ts';
import { staffExport, type StaffItem, type StaffListQuery, type StaffPage, staffPage, type StaffPageQuery } from './staff-list.ts';
import type { AsCaller, Programs } from '../serve/programs.ts';
import type { MountedResource } from '../mount/mounted-resource.ts';
import { policiesOf } from '../policy/policies.ts';
import type { Edge, Policy, StoredColumn } from '../policy/policy.ts';
import type { RowState } from '../policy/row-scope.ts';
import { possibleTransitions, refusedTransitions } from '../write/possible-transitions.ts';
import { readKey } from '../parameters/parameter-value.ts';
import { presentRows, selectRows } from '../read/read.ts';
import type { NamedRule } from '../declare/action-rule.ts';
import { type AnyResource, STAFF } from '../declare/resource.ts';
import type { AskedOf, CrudRequest } from '../policy/crud-request.ts';
import type { Item } from '../declare/item.ts';
import type { Asked, Intent } from '../write/intent.ts';
import { ruleFaults } from '../write/row-rules.ts';
import { ofVersion } from '../write/precondition.ts';
import type { RowKey } from '../write/row-statements.ts';
import type { Readable } from 'node:stream';
import type { Schema } from '../../http/declare/schema.ts';
import type { FileFormat } from '../options/file-options.ts';
import type { RowImportOptions } from '../files/import-item.ts';
import { type ImportResult, RowImport } from '../files/row-import.ts';
import { unwritableColumns } from '../policy/unwritable-columns.ts';

/** What a form of the admin site sent, besides its values. */
export interface AdminWrite {
  /** Names of the fields that were sent: what the right to write is decided by. */
  readonly sent: readonly string[];
  /** The version the form was made from: another one in the database is a 412. */
  readonly version?: number;
  readonly tx?: Db;
  /** Collects values that the resource gives once. Without it, a hook that gives one fails. */
  readonly once?: Map<string, string | null> | undefined;
  /** Gets what the code of an action returned. */
  readonly returned?: ((value: unknown) => void) | undefined;
}

export interface AdminImport extends Pick<RowImportOptions, 'by' | 'translate' | 'requireAdmitted'> {
  /** Columns that are taken: those of the form of a new row. */
  readonly input: readonly string[];
  readonly schema: Schema;
  readonly isDryRun: boolean;
}

/** How the site reaches the rows of a resource. */
export interface StaffPlace {
  /** The alias of the database. Default: that of the resource. */
  readonly using?: string | undefined;
  /** The unique column that the site addresses rows by. Default: the key. */
  readonly lookup?: string | undefined;
  /** Null: what the caller sees without being staff. Default: `staff`. */
  readonly audience?: string | null;
}

/** A row as its page needs it. */
export interface AdminRecordRow {
  /** As code has it, hidden columns included. */
  readonly row: Item;
  /** As this staff member sees it. */
  readonly item: Item;
  /** The names of its computed fields, and of its columns in another form. */
  readonly computed: readonly string[];
  readonly related: readonly RelatedRows[];
}

/** Rows of a relation to many, as the declaration orders and limits them. */
export interface RelatedRows {
  readonly name: string;
  readonly model: Model;
  /** The column that refers to the row. */
  readonly column: string;
  /** The columns that this member of staff sees. */
  readonly columns: ReadonlySet<string>;
  readonly items: readonly Item[];
  /** There are more than the limit of the relation. */
  readonly hasMore: boolean;
}

/** The resource that declares a model in this app. */
export function resourceOfModel(app: App, model: Model): AnyResource | undefined {
  return policiesOf(app).find(model, STAFF)?.resource;
}

/** The resource that audit entries call by this `target_type`: the name of a resource, or of its table. */
export function resourceOfTarget(app: App, targetType: string, audience: string | null = STAFF): AnyResource | undefined {
  const all = [...policiesOf(app).serving(audience)];
  return (all.find(({ name }) => name === targetType) ?? all.find(({ model }) => model.name === targetType))?.resource;
}

/**
 * A resource as the admin site reaches it: the rows that `resource({ admin })` says, the columns its rules show to this member of staff, and
 * the write pipeline with `via: 'admin'`. The values of a new row include its owner, and its tenant where the site shows all of them.
 */
export class AdminAccess {
  readonly #app: App;
  readonly #mounted: MountedResource;
  readonly #programs: Programs;
  readonly #as: AsCaller;
  readonly #using: string | undefined;
  readonly #caller: CallerInTransaction;
  /** The column that the site addresses rows by. */
  readonly #lookup: StoredColumn;

  constructor(app: App, resource: AnyResource, caller: CallerInTransaction, { using, lookup, audience = STAFF }: StaffPlace = {}) {
    this.#app = app;
    this.#using = using;
    this.#caller = caller;
    const { access, programs } = operationsOf(app, resource, audience, using);
    this.#mounted = access;
    this.#programs = programs;
    this.#as = asCaller(app, caller, audience);
    this.#lookup = (lookup === undefined ? undefined : access.policy.findColumn(lookup)) ?? access.policy.key;
  }

  /** Whether `resource({ admin })` says which rows staff see; without it they see what they would see on the API. */
  get isInSite(): boolean {
    return this.#mounted.policy.audienceRule !== undefined;
  }

  /** Like `#as`, for a request whose rows may depend on what it asks for. */
  #asking<R>(action: string, asked: Partial<Pick<AskedOf, 'filters' | 'keys'>>, work: (request: CrudRequest) => Promise<R>): Promise<R> {
    const { policy } = this.#mounted;
    return this.#as(action, (request) => work({ ...request, asked: { policy, filters: {}, keys: null, ...asked } }));
  }

  /** The row with this key among those the site shows, or 404. */
  async find(key: string, rows: RowState = 'live'): Promise<Item> {
    const { column, value } = this.#rowKey(key);
    return this.#asking('retrieve', { keys: [value] }, async (request) => {
      const [row] = await this.#programs.rowsAs(request, { [column.name]: value } as Where, 1, rows);
      if (row === undefined) throw this.#mounted.policy.missing();
      return row;
    });
  }

  rows(where?: Where, limit: number = limits.pageMax): Promise<Item[]> {
    return this.#as('list', (request) => this.#programs.rowsAs(request, where, limit));
  }

  /** Those of these keys, as text, whose rows the site shows, deleted ones included. A text that cannot be a key is not among them. */
  async knownKeys(texts: readonly string[]): Promise<ReadonlySet<string>> {
    return new Set((await this.byKeys(texts, 'any', [])).map(({ key }) => key));
  }

  /** Fields of the rows with these keys, as text. A text that cannot be a key is that of no row. */
  async byKeys(texts: readonly string[], rows: RowState, fields: readonly string[]): Promise<readonly StaffItem[]> {
    const { name, settings } = this.#lookup;
    const keys = texts.flatMap((text) => {
      const read = readKey(settings, text);
      return read.fault === undefined ? [read.value] : [];
    });
    const found = keys.length === 0 ? [] : await this.fieldsBy(name, keys, fields, rows);
    return found.map(({ value, item }) => ({ key: String(value), item }));
  }

  /** Nothing narrows the rows that this staff member sees. */
  seesEveryRow(): Promise<boolean> {
    return this.#as('list', async (request) => (await this.#mounted.policy.rows.visible(request, 'any')).compiled.constant === true);
  }

  /** One page of the list. */
  list(query: StaffPageQuery): Promise<StaffPage> {
    return this.#asking('list', query, (request) => staffPage(this.#mounted, request, query, this.#lookup.name));
  }

  /** The change log has the changes of the rows. */
  get isFollowed(): boolean {
    return this.#mounted.policy.isLogged;
  }

  /** Says that rows which this staff member sees changed, or the one with this key: at first once, then for each batch of changes. */
  async *news(key: string | undefined, following: Omit<StaffFollowing, 'row'>): AsyncGenerator<void> {
    const row = key === undefined ? undefined : await this.find(key, 'any');
    yield* staffNews(this.#app, this.#mounted, this.#caller, { ...following, row });
  }

  /** The rows of a list as a file. */
  async *export(query: StaffListQuery, format: FileFormat): AsyncGenerator<string, void> {
    await using services = this.#app.services.scope();
    const request = requestOf(this.#app, this.#caller, 'list', services, STAFF);
    const asked = { policy: this.#mounted.policy, filters: query.filters, keys: null };
    yield* staffExport(this.#mounted, { ...request, asked }, query, format);
  }

  /** Fields of the rows whose `column` has one of these values, with the value: among the rows that the site shows, deleted ones included. */
  fieldsBy(
    column: string,
    values: readonly unknown[],
    fields: readonly string[],
    rows: RowState = 'any',
  ): Promise<readonly { value: unknown; item: Item }[]> {
    const keys = column === this.#lookup.name ? values : null;
    return this.#asking('list', { keys }, async (request) => {
      const { policy } = this.#mounted;
      const shape = this.#mounted.shape(await this.#mounted.view(request), { fields, expand: [] }, 1);
      const unit = unitFor(shape, [column]);
      const db = policy.database(request);
      const where = await conditions(request, policy, [{ [column]: { in: values } } as Where], []);
      const found = await selectRows(db, request, { unit, where, limit: values.length, rows, isFreeForm: true });
      const items = await presentRows(db, request, unit, found);
      return items.map((item, index) => ({ value: unit.extra(found[index] as Item, column), item }));
    });
  }

  /** The columns and computed fields that this staff member sees. A column that is shown on some rows only is not among them. */
  columns(): Promise<ReadonlySet<string>> {
    return this.#as('list', async (request) => {
      const view = await this.#mounted.view(request);
      return new Set(
        [...view.fields.values()].flatMap((field) => (field.kind === 'computed' || field.shown === 'always' ? [field.name] : [])),
      );
    });
  }

  /**
   * A row whole, as code has it, and as this staff member sees it, with the rows of its relations to many: those whose resource is in the site, too, by
   * its own rules. Relations that `isShownElsewhere` are left out. 404 where the site does not show the row.
   */
  async record(key: string, rows: RowState, isShownElsewhere: (model: Model, column: string) => boolean): Promise<AdminRecordRow> {
    const { access } = expandingOperationsOf(this.#app, this.#mounted.resource, STAFF, this.#using);
    const { column, value } = this.#rowKey(key);
    return this.#asking('retrieve', { keys: [value] }, async (request) => {
      const { policy } = access;
      const view = await access.view(request);
      const edges = relationsInSite(policy, request).filter(
        ({ name, target, column }) => view.edge(name) !== undefined && !isShownElsewhere(target.model, column),
      );
      const expand = edges.map(({ name }) => name);
      const shape = access.shape(view, { fields: undefined, expand }, 1);
      const unit = unitFor(shape, policy.codeColumns);
      const db = policy.database(request);
      const where = [policy.rows.compile(request, { [column.name]: value } as Where)];
      const [row] = await selectRows(db, request, { unit, where, limit: 1, rows, isFreeForm: true, forCode: true });
      if (row === undefined) throw policy.missing();
      const [item = {}] = await presentRows(db, request, unit, [row]);
      return {
        row: Object.fromEntries(policy.codeColumns.map((name) => [name, unit.extra(row, name)])),
        item,
        computed: shape.computed.map(({ name }) => name),
        related: shape.edges.map(({ edge, shape: below }) => ({
          name: edge.name,
          model: edge.target.model,
          column: edge.column,
          columns: new Set(below.columns.flatMap(({ name, shown }) => (shown === 'null' ? [] : [name]))),
          items: (item[edge.name] ?? []) as readonly Item[],
          hasMore: item[`${edge.name}_more`] === true,
        })),
      };
    });
  }

  /** Asks the rules of the resource about values that are not written. Throws a 422. `before`: null for a new row. */
  async validate(values: Item, before: Item | null): Promise<void> {
    const errors = await this.#as(before === null ? 'create' : 'update', (request) => {
      const { policy } = this.#mounted;
      return ruleFaults(policy, policy.database(request), request, [{ values, before }]);
    });
    if (errors.length > 0) throw coreErrors.validation_error({ errors });
  }

  create(values: Item, write: AdminWrite): Promise<Item> {
    return this.#write('create', { verb: 'create' }, undefined, write, values);
  }

  update(key: string, changes: Item, write: AdminWrite): Promise<Item> {
    return this.#write('update', { verb: 'update' }, key, write, changes);
  }

  async destroy(key: string, write: AdminWrite = NOTHING_SENT): Promise<void> {
    await this.#write('destroy', { verb: 'destroy' }, key, write);
  }

  /** Brings back a row that was deleted softly, and those that went with it. */
  restore(key: string, write: AdminWrite = NOTHING_SENT): Promise<Item> {
    return this.#write('restore', { verb: 'restore' }, key, write);
  }

  /** Moves the state of a row. Its permission is the site's to ask: see `transitions`. */
  transition(key: string, name: string, input?: unknown, write: AdminWrite = NOTHING_SENT): Promise<Item> {
    return this.#named('transition', this.#mounted.transitionRules[name], key, { name, input }, write);
  }

  /** Runs an action on a row. */
  action(key: string, name: string, input?: unknown, write: AdminWrite = NOTHING_SENT): Promise<Item> {
    return this.#named('action', this.#mounted.actionRules[name], key, { name, input }, write);
  }

  #named(
    verb: 'transition' | 'action',
    rule: NamedRule | undefined,
    key: string,
    action: { readonly name: string; readonly input: unknown },
    write: AdminWrite,
  ): Promise<Item> {
    if (rule === undefined) throw new Error(`The resource "${this.#mounted.resource.name}" has no ${verb} "${action.name}".`);
    const { permission } = rule;
    return this.#write(action.name, { verb, action }, key, write, {}, (request) =>
      permission === undefined
        ? undefined
        : async (row: Item) => {
            if ((await permission.evaluate(request.context, row)) !== true) throw await permission.denial(request.context, row);
          },
    );
  }

  async #write(
    action: string,
    intent: Pick<Intent, 'verb' | 'action'>,
    key: string | undefined,
    { sent, version, tx, once, returned }: AdminWrite,
    values: Item = {},
    authorize: (request: CrudRequest) => Asked['authorize'] = () => undefined,
  ): Promise<Item> {
    const rowKey = key === undefined ? undefined : this.#rowKey(key);
    return this.#asking(action, { keys: rowKey === undefined ? null : [rowKey.value] }, async (request) => {
      const { pipeline, policy } = this.#mounted;
      const row = { values, sent, ifMatch: ofVersion(version), ...(rowKey === undefined ? {} : { key: rowKey }) };
      const asked = { authorize: authorize(request), ...(once === undefined ? {} : { once }), returned };
      const [written] = await pipeline.run(tx ?? policy.database(request), request, { ...intent, via: 'admin', rows: [row], asked });
      return written as Item;
    });
  }

  /** 404 for a text that cannot be a key. */
  #rowKey(text: string): RowKey {
    const read = readKey(this.#lookup.settings, text);
    if (read.fault !== undefined) throw this.#mounted.policy.missing();
    return { column: this.#lookup, value: read.value };
  }

  /**
   * Those of the columns that this member of staff cannot write, and the permission that says so. Without a row: those that are closed on every row;
   * rules about the row are not asked.
   */
  closedColumns(names: readonly string[], row?: Item): Promise<ReadonlyMap<string, string>> {
    return this.#as(row === undefined ? 'create' : 'update', async (request) => {
      const found = await unwritableColumns(this.#mounted.policy, request.context, names, row);
      const closed = [...found].filter(([, { verdict }]) => verdict === false || row !== undefined);
      return new Map(closed.map(([name, { permission }]) => [name, permission.name]));
    });
  }

  /** The transitions this member of staff may make from the row's state now. */
  transitions(row: Item): Promise<string[]> {
    return this.#as('transitions', (request) =>
      possibleTransitions(this.#mounted.policy, request, row).then((found) => found.map(({ name }) => name)),
    );
  }

  /** The actions that this staff member may run on the row. */
  actions(row: Item): Promise<string[]> {
    return this.#as('actions', async (request) => {
      const names: string[] = [];
      for (const [name, { permission }] of Object.entries(this.#mounted.actionRules))
        if (permission === undefined || (await permission.evaluate(request.context, row)) === true) names.push(name);
      return names;
    });
  }

  /** By name, why this member of staff cannot make a transition of the row now. Nothing where the state is hidden: the reason would tell it. */
  refusedTransitions(row: Item): Promise<Readonly<Record<string, string>>> {
    return this.#as('transitions', async (request) => {
      const { policy } = this.#mounted;
      const state = policy.options.state as string | undefined;
      if (state === undefined || !(await this.columns()).has(state)) return {};
      return refusedTransitions(policy, request, row);
    });
  }

  /** Makes rows of a file, and changes those that `by` finds: all or none, with `via: 'import'`. */
  importRows(body: Readable, format: FileFormat, { input, schema, isDryRun, ...options }: AdminImport): Promise<ImportResult> {
    const { policy, list, pipeline } = this.#mounted;
    const rows = new RowImport({ policy, list, pipeline, input, schema }, { rowsMax: limits.importRows, ...options });
    return this.#as('create', (request) => rows.run(request, body, format, { isDryRun, isUpsert: options.by !== undefined }));
  }
}

/** Relations to many that lead to rows which staff see: of a resource that is in the site, with its tenant known. */
function relationsInSite(policy: Policy, { tenant }: CrudRequest): Edge[] {
  return Object.keys(policy.resource.relations as object)
    .flatMap((name) => policy.edge(name) ?? [])
    .filter(
      ({ kind, target: { audienceRule, bounds } }) =>
        kind === 'many' && audienceRule !== undefined && (bounds.tenant === undefined || tenant !== null),
    )
    .slice(0, usualLimits.expandPaths);
}

const NOTHING_SENT: AdminWrite = Object.freeze({ sent: [] });
