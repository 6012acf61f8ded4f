import type { UserDirectory } from '../../auth/people/user-directory.ts';
import { opened, resolveReference, type ColumnSettings } from '../../db/declare/column.ts';
import type { Db } from '../../db/engine/db.ts';
import type { Model } from '../../db/declare/model.ts';
import { statementsOf, type ModelColumn, type ModelStatements } from '../../db/sql/model-statements.ts';
import { rowKey } from '../../db/sql/row-key.ts';
import type { Columns } from '../../db/declare/rows.ts';
import type { JoinedTable, Where } from '../../db/sql/where/where.ts';
import type { ErrorDefinition } from '../../errors/catalog.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { Permission } from '../../permissions/permission.ts';
import { type FieldRule, opensColumn } from '../declare/field-rule.ts';
import { PEOPLE } from '../declare/people.ts';
import { isDerived } from '../declare/derived.ts';
import { EXPAND_LIMIT_DEFAULT, type Relations } from '../declare/relation.ts';
import type { AnyResource, AnyResourceOptions, AudienceRule } from '../declare/resource.ts';
import type { ComputedField } from '../declare/computed-field.ts';
import { type OwnerRule, scopeRule, type TenantRule } from '../declare/scope-rule.ts';
import type { CrudRequest } from './crud-request.ts';
import { DerivedState } from './derived-state.ts';
import { peopleJoin } from './people-join.ts';
import { RowScope } from './row-scope.ts';
import { type SoftDelete, softDeleteOf } from './soft-delete.ts';

/** A column as statements have it: keys, versions, values that a client sent. Never a way to show a value: that is the view's. */
export type StoredColumn = ModelColumn;

/** A relation with the policy it leads to. */
export interface Edge {
  readonly name: string;
  readonly kind: 'one' | 'many';
  readonly target: Policy;
  readonly column: string;
  readonly order: readonly string[];
  readonly limit: number;
  readonly where: Where | undefined;
  /** Of a to-one relation: which rows at its end are seen by whoever sees the row at its start. */
  readonly seenWithRow: Where | undefined;
  /** Set where the rows at its end are not in the table of their model: users of the app. */
  readonly table: JoinedTable | undefined;
  /** The rows at its end are in another database: they are loaded after the statement, and conditions cannot lead there. */
  readonly isLoaded: boolean;
}

/** Finds the policy of a model among all of the app. */
export type PolicyOf = (model: Model) => Policy | undefined;

/** Where a policy holds: its app, its audience, its database, and the policies beside it. */
export interface PolicyPlace {
  readonly policyOf: PolicyOf;
  readonly all: () => Iterable<Policy>;
  readonly hasTenants: boolean;
  readonly users: UserDirectory | null;
  readonly audience: string | null;
  readonly using: string;
  /** A controller of the app has live lists of the model. */
  readonly isLogged: boolean;
  /** A resource of the model says that triggers log its changes. */
  readonly isTriggered: boolean;
}

/**
 * A resource, compiled, one per app, audience and database: its table and key, where relations and references lead, and which rows a caller sees (`rows`). What a
 * caller may know of the columns is asked of a view.
 */
export class Policy {
  readonly resource: AnyResource;
  readonly name: string;
  readonly model: Model;
  readonly options: AnyResourceOptions;
  readonly statements: ModelStatements;
  /** The column that tells rows apart: the primary key, or a unique column of a model whose key has several columns. */
  readonly key: StoredColumn;
  readonly owner: OwnerRule | undefined;
  readonly tenant: TenantRule | undefined;
  /** Whether the app has tenants. */
  readonly hasTenants: boolean;
  /** The users of the app, which {@link PEOPLE} relations lead to. */
  readonly users: UserDirectory | null;
  readonly using: string;
  /** Its changes are written to the change log, which live lists read. */
  readonly isLogged: boolean;
  /** Triggers of the database write them, and nothing else does. */
  readonly isTriggered: boolean;
  /** Computed fields, and columns in another form. */
  readonly computed: Readonly<Record<string, ComputedField>>;
  /** Computed fields that conditions decide, and that filters and statistics know, too. */
  readonly derived = new Map<string, DerivedState>();
  /** The 404 of a row that is not there, or that the caller does not see. */
  readonly missing: ErrorDefinition;
  /** Relations lead to policies of the same audience. Null: the resource's own rules. */
  readonly audience: string | null;
  /** What the resource says of its audience; undefined where its own rules hold. */
  readonly audienceRule: AudienceRule | undefined;
  /** The columns that bound a caller's rows. */
  readonly bounds: { readonly tenant: string | undefined; readonly owner: string | undefined };
  readonly rows: RowScope;
  /** The distinct permissions that decide which columns are seen. */
  readonly permissions: readonly Permission[];
  /** Undefined where deleting a row removes it. */
  readonly softDelete: SoftDelete | undefined;
  #selfReferences: Policy['selfReferences'] | undefined;
  readonly #policyOf: PolicyOf;
  readonly #all: () => Iterable<Policy>;
  readonly #edges = new Map<string, Edge | undefined>();
  #references: ReadonlyMap<string, Policy> | undefined;

  constructor(resource: AnyResource, place: PolicyPlace) {
    const { policyOf, all, hasTenants, users, audience, using } = place;
    this.resource = resource;
    this.name = resource.name;
    this.model = resource.model;
    this.options = resource.options;
    this.statements = statementsOf(this.model);
    this.key = rowKey(this.model);
    this.#policyOf = policyOf;
    this.#all = all;
    this.users = users;
    this.softDelete = softDeleteOf(this.statements, this.options.softDelete);
    const { owner, tenant, fields = {}, computed, shown = {}, missing = coreErrors.not_found } = this.options;
    this.owner = scopeRule<OwnerRule>(owner);
    this.tenant = scopeRule<TenantRule>(tenant);
    this.hasTenants = hasTenants;
    this.using = using;
    this.isLogged = place.isLogged;
    this.isTriggered = place.isTriggered;
    const ofColumns = Object.entries(shown).map(([name, field]) => [name, { ...field, requires: [name, ...field.requires] }] as const);
    for (const [name, field] of Object.entries(computed ?? {}))
      if (isDerived(field)) this.derived.set(name, new DerivedState(field, this.model, resource.relations as Relations));
    const states = [...this.derived].map(([name, state]) => [name, state.field] as const);
    this.computed = { ...computed, ...Object.fromEntries([...states, ...ofColumns]) };
    this.missing = missing;
    this.audience = audience;
    this.audienceRule = audience === null ? undefined : this.options.audiences?.[audience];
    this.bounds = {
      tenant: this.audienceRule?.tenant === 'all' ? undefined : this.tenant?.column,
      owner: this.audienceRule === undefined ? this.owner?.column : undefined,
    };
    this.rows = new RowScope(this, policyOf);
    const rules: readonly (FieldRule | undefined)[] = Object.values(fields);
    this.permissions = [...new Set(rules.flatMap((rule) => rule?.visibleTo ?? []))];
  }

  /** The table's name as SQL has it. */
  get table(): string {
    return this.statements.table;
  }

  /** The tables' own name, which changes of its rows are told by. */
  get tableName(): string {
    return this.model === PEOPLE && this.users !== null ? this.users.table.name : this.model.name;
  }

  /** Every column of the table, hidden or not: for whole rows that code gets, never for the wire. */
  get codeColumns(): readonly string[] {
    return [...this.statements.byName.keys()];
  }

  hasColumn(name: string): boolean {
    return this.statements.byName.has(name);
  }

  /** The settings of a column, with a reference resolved to the column it refers to. */
  settingsOf(name: string): ColumnSettings {
    return resolveReference(this.statements.column(name).settings);
  }

  /** The column of this name that rows can be found by; undefined when there is none. */
  findColumn(name: string): StoredColumn | undefined {
    return this.statements.byName.get(name);
  }

  /** True when clients may send the column: `input` names it; without `input`, every writable column that is not hidden. */
  accepts({ name, settings }: StoredColumn): boolean {
    const { input, hidden = [] } = this.options;
    if (settings.guarded === true) return opensColumn(this.options, name);
    return !settings.readOnly && (input === undefined ? !hidden.includes(name) : input.includes(name));
  }

  /** Columns that clients may send, by what the resource and its model say. */
  acceptedColumns(): StoredColumn[] {
    return this.statements.columns.filter((column) => this.accepts(column));
  }

  /** Columns that clients may send, as the schemas of bodies take them. */
  inputColumns(names: readonly string[]): Columns {
    const { columns } = this.model;
    return Object.fromEntries(
      names.map((name) => [name, columns[name]?.settings.guarded === true ? opened(columns[name]) : columns[name]]),
    ) as Columns;
  }

  /** Guarded columns that the resource does not open: no program writes them through it by passing on what a client sent. */
  guardedIn(values: object): readonly string[] {
    return Object.keys(values).filter((name) => {
      const column = this.statements.byName.get(name);
      return column?.settings.guarded === true && !this.accepts(column);
    });
  }

  /** The rule about a column, also where the column itself is never shown. */
  ruleOf(column: string): FieldRule | undefined {
    return this.options.fields?.[column];
  }

  database({ databases }: CrudRequest): Db {
    return databases[this.using] as Db;
  }

  /** A relation by its name; undefined when there is none, or the model it leads to has no policy. */
  edge(name: string): Edge | undefined {
    if (this.#edges.has(name)) return this.#edges.get(name);
    const edge = this.#makeEdge(name);
    this.#edges.set(name, edge);
    return edge;
  }

  #makeEdge(name: string): Edge | undefined {
    const relations = this.resource.relations;
    if (!Object.hasOwn(relations, name)) return undefined;
    const relation = relations[name];
    const target = this.#policyOf(relation.model() as Model);
    if (target === undefined) return undefined;
    const { kind, column } = relation;
    if (kind === 'one') {
      const seenWithRow = relation.seenWithRow as Where | undefined;
      const isLoaded = target.model === PEOPLE && target.using !== this.using;
      return {
        name,
        kind,
        target,
        column,
        order: [],
        limit: 1,
        where: undefined,
        seenWithRow,
        table: this.#tableOf(target, column),
        isLoaded,
      };
    }
    const { order, limit = EXPAND_LIMIT_DEFAULT, where } = relation;
    return { name, kind, target, column, order, limit, where, seenWithRow: undefined, table: undefined, isLoaded: false };
  }

  #tableOf(target: Policy, column: string): JoinedTable | undefined {
    if (target.model !== PEOPLE || this.users === null || !this.hasColumn(column)) return undefined;
    return peopleJoin(this.users.table, this.settingsOf(column).kind);
  }

  /** The policy of the model that a column refers to. */
  referenced(column: StoredColumn): Policy | undefined {
    const target = column.settings.reference?.target;
    if (typeof target === 'function') return this.#policyOf(target() as unknown as Model);
    // A table that refers to itself, or to one that is declared later, names it.
    return target === undefined ? undefined : [...this.#all()].find(({ model, using }) => model.name === target && using === this.using);
  }

  /** Columns by which a row keeps another row of its own table from being deleted, and the columns that they refer to. */
  get selfReferences(): readonly { readonly name: string; readonly to: string }[] {
    return (this.#selfReferences ??= this.statements.columns.flatMap((column) => {
      const { reference, nullable } = column.settings;
      if (
        reference?.onDelete !== 'restrict' ||
        reference.isConstrained === false ||
        !nullable ||
        this.referenced(column)?.model !== this.model
      )
        return [];
      return [{ name: column.name, to: reference.column ?? (this.model.primaryKey[0] as string) }];
    }));
  }

  /** The resources that take rows of this one along when they are deleted, with the column of this one that refers to theirs. */
  cascadeParents(): { readonly parent: Policy; readonly column: string }[] {
    return [...this.#all()].flatMap((parent) =>
      (parent.softDelete?.cascade ?? []).flatMap((name) => {
        const edge = parent.edge(name);
        return edge?.target === this ? [{ parent, column: edge.column }] : [];
      }),
    );
  }

  /** The columns that refer to another model, by name, with the policy of that model. */
  get references(): ReadonlyMap<string, Policy> {
    this.#references ??= new Map(
      this.statements.columns.flatMap((column) => {
        const target = this.referenced(column);
        return target === undefined ? [] : [[column.name, target] as const];
      }),
    );
    return this.#references;
  }
}

/** Columns that may be changed: a key never is, also one of several columns. */
export function withoutKey(policy: Policy, columns: Columns): Columns {
  return Object.fromEntries(Object.entries(columns).filter(([name]) => !isKey(policy, name)));
}

/** True when the column is the key of a row, or part of it. */
export function isKey({ model, key }: Policy, name: string): boolean {
  return name === key.name || model.primaryKey.includes(name);
}
