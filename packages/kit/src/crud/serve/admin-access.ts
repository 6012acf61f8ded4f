import type { App } from '../../app/declare/module.ts';
import type { Db } from '../../db/engine/db.ts';
import type { Model } from '../../db/declare/model.ts';
import type { Where } from '../../db/sql/where/where.ts';
import { asCaller, expandingOperationsOf, operationsOf, type CallerInTransaction } from './crud-of.ts';
import { limits, usualLimits } from '../declare/limits.ts';
import { narrowWhole, unitFor } from '../read/list.ts';
import type { AsCaller, Programs } from './programs.ts';
import type { MountedResource } from '../mount/mounted-resource.ts';
import { policiesOf } from '../policy/policies.ts';
import type { Edge, Policy } from '../policy/policy.ts';
import type { RowState } from '../policy/row-scope.ts';
import { possibleTransitions, refusedTransitions } from '../write/possible-transitions.ts';
import { readKey } from '../parameters/parameter-value.ts';
import { presentRows, selectRows } from '../read/read.ts';
import type { NamedRule } from '../declare/action-rule.ts';
import { type AnyResource, STAFF } from '../declare/resource.ts';
import type { SearchBackend } from '../declare/search-backend.ts';
import { callerOf, type CrudRequest } from '../policy/crud-request.ts';
import type { Item } from '../declare/item.ts';
import type { Asked, Intent } from '../write/intent.ts';
import { ofVersion } from '../write/precondition.ts';
import type { Readable } from 'node:stream';
import type { Schema } from '../../http/declare/schema.ts';
import type { FileFormat } from '../options/file-options.ts';
import { type ImportResult, RowImport } from '../files/row-import.ts';

/** What a form of the admin site sent, besides its values. */
export interface AdminWrite {
  /** Names of the fields that were sent: what the right to write is decided by. */
  readonly sent: readonly string[];
  /** The version the form was made from: another one in the database is a 412. */
  readonly version?: number;
  readonly tx?: Db;
}

export interface AdminImport {
  /** Columns that are taken: those of the form of a new row. */
  readonly input: readonly string[];
  readonly schema: Schema;
  /** The column that finds rows which are there already; absent: every row is new. */
  readonly by?: string | undefined;
  readonly isDryRun: boolean;
}

/** What the declaration of a resource adds to a row. */
export interface AdminExpansion {
  /** Computed fields, by name. */
  readonly computed: Item;
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

const NOTHING_MORE: AdminExpansion = Object.freeze({ computed: {}, related: [] });

/** The resource that declares a model in this app. */
export function resourceOfModel(app: App, model: Model): AnyResource | undefined {
  return policiesOf(app).find(model, STAFF)?.resource;
}

/** The resource that audit entries call by this `target_type`: the name of a resource, or of its table. */
export function resourceOfTarget(app: App, targetType: string): AnyResource | undefined {
  const all = [...policiesOf(app).serving(STAFF)];
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

  constructor(app: App, resource: AnyResource, caller: CallerInTransaction) {
    this.#app = app;
    const { access, programs } = operationsOf(app, resource, STAFF);
    this.#mounted = access;
    this.#programs = programs;
    this.#as = asCaller(app, caller, STAFF);
  }

  /** Whether `resource({ admin })` says which rows staff see; without it they see what they would see on the API. */
  get isInSite(): boolean {
    return this.#mounted.policy.audienceRule !== undefined;
  }

  /** The column that addresses and audit entries know rows by. */
  get keyName(): string {
    return this.#mounted.policy.key.name;
  }

  /** The row with this key among those the site shows, or 404. */
  find(key: string, rows: RowState = 'live'): Promise<Item> {
    return this.#as('retrieve', (request) => this.#programs.findAs(request, key, rows));
  }

  rows(where?: Where, limit: number = limits.pageMax): Promise<Item[]> {
    return this.#as('list', (request) => this.#programs.rowsAs(request, where, limit));
  }

  /** Those of these keys, as text, whose rows the site shows, deleted ones included. A text that cannot be a key is not among them. */
  knownKeys(texts: readonly string[]): Promise<ReadonlySet<string>> {
    return this.#as('list', async (request) => {
      const { policy } = this.#mounted;
      const key = policy.key.name;
      const settings = policy.settingsOf(key);
      const values = texts.flatMap((text) => {
        const read = readKey(settings, text);
        return read.fault === undefined ? [read.value] : [];
      });
      if (values.length === 0) return new Set<string>();
      const rows = await this.#programs.rowsAs(request, { [key]: { in: values } } as Where, values.length, 'any');
      return new Set(rows.map((row) => String(row[key])));
    });
  }

  /** The condition on the rows that the site shows, for a statement of its own; values are appended to `parameters`. `true` is every row. */
  condition(dialect: Db['dialect'], alias: string, parameters: unknown[], rows: RowState = 'live'): Promise<string | boolean> {
    return this.#as('list', async (request) => {
      const { policy } = this.#mounted;
      const { compiled } = await policy.rows.visible(request, rows);
      if (compiled.constant !== undefined) return compiled.constant;
      const whole = rows === 'live' ? await narrowWhole(policy.database(request), request, policy) : [];
      return [...whole, compiled].map((each) => each.append(dialect, alias, parameters)).join(' and ');
    });
  }

  /** The condition of a search, for a statement of the site's own; values are appended to `parameters`. */
  search(backend: SearchBackend, text: string, dialect: Db['dialect'], alias: string, parameters: unknown[]): Promise<string | boolean> {
    return this.#as('list', async (request) => {
      const { policy } = this.#mounted;
      const where = await backend.where(text, { caller: callerOf(request), model: policy.model, dialect });
      const compiled = await policy.rows.compiled(request, where);
      return compiled.constant ?? compiled.append(dialect, alias, parameters);
    });
  }

  /** The columns this member of staff sees. One that is shown on some rows only is not among them. */
  columns(): Promise<ReadonlySet<string>> {
    return this.#as('list', async (request) => {
      const view = await this.#mounted.view(request);
      return new Set(view.shownColumns().flatMap(({ name, shown }) => (shown === 'always' ? [name] : [])));
    });
  }

  /**
   * Computed fields of a row, and rows of its relations to many: those whose resource is in the site too, by its own rules. Relations that
   * `isShownElsewhere` are left out.
   */
  expanded(key: string, isShownElsewhere: (model: Model, column: string) => boolean): Promise<AdminExpansion> {
    const { access } = expandingOperationsOf(this.#app, this.#mounted.resource, STAFF);
    return this.#as('retrieve', async (request) => {
      const { policy } = access;
      const view = await access.view(request);
      const edges = relationsInSite(policy, request).filter(
        ({ name, target, column }) => view.edge(name) !== undefined && !isShownElsewhere(target.model, column),
      );
      const expand = edges.map(({ name }) => name);
      const shape = access.shape(view, { fields: undefined, expand }, 1);
      if (shape.computed.length === 0 && edges.length === 0) return NOTHING_MORE;
      const unit = unitFor(shape, []);
      const { column, value } = access.rowKey(key);
      const db = policy.database(request);
      const where = [policy.rows.compile(request, { [column.name]: value } as Where)];
      const [item] = await presentRows(db, request, unit, await selectRows(db, request, { unit, where, limit: 1, isFreeForm: true }));
      if (item === undefined) return NOTHING_MORE;
      return {
        computed: Object.fromEntries(shape.computed.filter(({ name }) => name in item).map(({ name }) => [name, item[name]])),
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

  /** Computed fields of rows, by the text of their keys, in one statement. Fields that this member of staff may not see are left out. */
  computed(keys: readonly unknown[], names: readonly string[]): Promise<ReadonlyMap<string, Item>> {
    return this.#as('list', async (request) => {
      const { policy } = this.#mounted;
      const view = await this.#mounted.view(request);
      const fields = view.computedFields().flatMap(({ name }) => (names.includes(name) ? [name] : []));
      if (fields.length === 0 || keys.length === 0) return new Map<string, Item>();
      const unit = unitFor(this.#mounted.shape(view, { fields, expand: [] }, keys.length), []);
      const db = policy.database(request);
      const where = [policy.rows.compile(request, { [policy.key.name]: { in: keys } } as Where)];
      const rows = await selectRows(db, request, { unit, where, limit: keys.length, isFreeForm: true });
      const items = await presentRows(db, request, unit, rows);
      return new Map(items.map((item) => [String(item[policy.key.name]), item]));
    });
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

  #write(
    action: string,
    intent: Pick<Intent, 'verb' | 'action'>,
    key: string | undefined,
    { sent, version, tx }: AdminWrite,
    values: Item = {},
    authorize: (request: CrudRequest) => Asked['authorize'] = () => undefined,
  ): Promise<Item> {
    return this.#as(action, async (request) => {
      const { pipeline, policy } = this.#mounted;
      const row = { values, sent, ifMatch: ofVersion(version), ...(key === undefined ? {} : { key: this.#mounted.rowKey(key) }) };
      const asked = { authorize: authorize(request) };
      const [written] = await pipeline.run(tx ?? policy.database(request), request, { ...intent, via: 'admin', rows: [row], asked });
      return written as Item;
    });
  }

  /**
   * Those of the columns that this member of staff cannot write, and the permission that says so. Without a row: those that are closed on every row;
   * rules about the row are not asked.
   */
  closedColumns(names: readonly string[], row?: Item): Promise<ReadonlyMap<string, string>> {
    return this.#as(row === undefined ? 'create' : 'update', async (request) => {
      const closed = new Map<string, string>();
      for (const name of names) {
        const permission = this.#mounted.policy.ruleOf(name)?.writableBy;
        const verdict = (await permission?.evaluate(request.context, row)) ?? true;
        if (verdict === false || (verdict === 'unknown' && row !== undefined)) closed.set(name, permission?.name ?? '');
      }
      return closed;
    });
  }

  /** The transitions this member of staff may make from the row's state now. */
  transitions(row: Item): Promise<string[]> {
    return this.#as('transitions', (request) =>
      possibleTransitions(this.#mounted.policy, request, row).then((found) => found.map(({ name }) => name)),
    );
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
  importRows(body: Readable, format: FileFormat, { input, schema, by, isDryRun }: AdminImport): Promise<ImportResult> {
    const { policy, list, pipeline } = this.#mounted;
    const rows = new RowImport({ policy, list, pipeline, input, schema }, { rowsMax: limits.importRows, by });
    return this.#as('create', (request) => rows.run(request, body, format, { isDryRun, isUpsert: by !== undefined }));
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
