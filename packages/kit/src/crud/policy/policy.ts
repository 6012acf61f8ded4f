import { resolveReference, type ColumnSettings } from '../../db/column.ts';
import type { User } from '../../auth/principal.ts';
import type { Db } from '../../db/db.ts';
import type { Model } from '../../db/model.ts';
import { statementsOf, type ModelColumn, type ModelStatements } from '../../db/model-statements.ts';
import type { Columns } from '../../db/rows.ts';
import { compileWhere, type CompiledWhere } from '../../db/where/compile-where.ts';
import type { Where, WhereRelation } from '../../db/where/where.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { hasCode } from '../../errors/kit-error.ts';
import type { Permission, Verdict } from '../../permissions/permission.ts';
import type { CrudCaller } from '../declare/crud-caller.ts';
import { callerOf, type CrudRequest, type Scope, type Visibility, type WriteScope } from './crud-request.ts';
import type { FieldRule } from '../declare/field-rule.ts';
import type { Maybe } from '../../db/maybe.ts';
import { EXPAND_LIMIT_DEFAULT } from '../declare/relation.ts';
import type { AnyResource, AnyResourceOptions, OwnerRule } from '../declare/resource.ts';
import { type AccessContext, type RowAccess, VIEW } from '../declare/row-access.ts';
import { type SoftDelete, softDeleteOf } from './soft-delete.ts';

/** A column that may leave, with its rule. */
export interface ShownColumn {
  readonly name: string;
  readonly column: ModelColumn;
  /** With references resolved to what they refer to. */
  readonly settings: ColumnSettings;
  readonly rule: FieldRule | undefined;
  /** Index of the rule's permission among the policy's; -1 without one. */
  readonly permission: number;
}

/** A relation with the policy it leads to. */
export interface Edge {
  readonly name: string;
  readonly kind: 'one' | 'many';
  readonly target: Policy;
  readonly column: string;
  readonly order: readonly string[];
  readonly limit: number;
  readonly where: Where | undefined;
}

/** Finds the policy of a model among all of the app. */
export type PolicyOf = (model: Model) => Policy | undefined;

/** Which rows of a table that deletes softly: those that are there, those that were deleted, both. */
export type RowState = 'live' | 'deleted' | 'any';

/**
 * A resource, compiled: which rows a caller sees (as a condition), which columns, and where relations lead. One per resource and app; every
 * path to the rows asks it.
 */
export class Policy {
  readonly resource: AnyResource;
  readonly name: string;
  readonly model: Model;
  readonly options: AnyResourceOptions;
  readonly statements: ModelStatements;
  /** The column that tells rows apart: the primary key, or a unique column of a model whose key has several columns. */
  readonly key: ModelColumn;
  readonly owner: OwnerRule | undefined;
  readonly using: string;
  /** Columns that may leave for some caller, in the order of the model. */
  readonly shown: ReadonlyMap<string, ShownColumn>;
  /** The distinct permissions that decide what is seen. */
  readonly permissions: readonly Permission[];
  /** Undefined where deleting a row removes it. */
  readonly softDelete: SoftDelete | undefined;
  readonly #policyOf: PolicyOf;
  readonly #all: () => Iterable<Policy>;
  /** What a request keeps the rows of each state under. */
  readonly #scopeKeys: Readonly<Record<RowState, object>> = { live: this, deleted: {}, any: {} };
  readonly #edges = new Map<string, Edge | undefined>();
  #references: ReadonlyMap<string, Policy> | undefined;

  constructor(resource: AnyResource, policyOf: PolicyOf, all: () => Iterable<Policy>) {
    this.resource = resource;
    this.name = resource.name;
    this.model = resource.model;
    this.options = resource.options;
    this.statements = statementsOf(this.model);
    this.key = uniqueColumn(this.model, this.statements) ?? (this.statements.key[0] as ModelColumn);
    this.#policyOf = policyOf;
    this.#all = all;
    this.softDelete = softDeleteOf(this.statements, this.options.softDelete);
    const { owner, using = 'default', fields = {}, hidden = [] } = this.options;
    this.owner = typeof owner === 'string' ? { column: owner } : owner;
    this.using = using;
    const rules = fields as Readonly<Record<string, FieldRule | undefined>>;
    this.permissions = [...new Set(Object.values(rules).flatMap((rule) => rule?.visibleTo ?? []))];
    this.shown = new Map(
      this.statements.columns
        .filter(({ name, settings }) => !settings.sensitive && !settings.internal && !hidden.includes(name))
        .map((column) => {
          const rule = rules[column.name];
          const permission = rule?.visibleTo === undefined ? -1 : this.permissions.indexOf(rule.visibleTo);
          return [column.name, { name: column.name, column, settings: resolveReference(column.settings), rule, permission }];
        }),
    );
  }

  /** Whether clients may send the column: what `input` names; without it every writable column that is not hidden. */
  accepts({ name, settings }: ModelColumn): boolean {
    const { input, hidden = [] } = this.options;
    return !settings.readOnly && (input === undefined ? !hidden.includes(name) : input.includes(name));
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
    if (kind === 'one') return { name, kind, target, column, order: [], limit: 1, where: undefined };
    return { name, kind, target, column, order: relation.order, limit: relation.limit ?? EXPAND_LIMIT_DEFAULT, where: relation.where };
  }

  /** The policy of the model that a column refers to. */
  referenced(column: ModelColumn): Policy | undefined {
    const target = column.settings.reference?.target;
    if (typeof target === 'function') return this.#policyOf(target() as unknown as Model);
    // A table that refers to itself, or to one that is declared later, names it.
    return target === undefined ? undefined : [...this.#all()].find(({ model, using }) => model.name === target && using === this.using);
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

  /** What the caller may see of the columns. Decided once per request. */
  visibility(request: CrudRequest): Maybe<Visibility> {
    if (this.permissions.length === 0) return EVERYTHING;
    const known = request.visibilities.get(this);
    if (known !== undefined) return known;
    const verdicts = this.permissions.map((permission) => permission.evaluate(request.context));
    const settle = (settled: readonly Verdict[]): Visibility => {
      const visibility = {
        mask: settled.map((verdict) => (verdict === 'unknown' ? 'u' : verdict ? '1' : '0')).join(''),
        verdicts: settled,
      };
      request.visibilities.set(this, visibility);
      return visibility;
    };
    return verdicts.some((verdict) => verdict instanceof Promise)
      ? Promise.all(verdicts.map(async (verdict) => verdict)).then(settle)
      : settle(verdicts as Verdict[]);
  }

  /** Whether a caller sees the column: yes, no, or only on some rows. */
  sees({ verdicts }: Visibility, { permission }: ShownColumn): Verdict {
    return permission === -1 ? true : (verdicts[permission] as Verdict);
  }

  /** The permission that decides who sees the column, also where the column itself is never shown. */
  visibleTo(column: string): Permission | undefined {
    return this.options.fields?.[column]?.visibleTo;
  }

  /**
   * The rows the caller may see, as a checked condition. Throws 403 `tenant_required` and 401 where the policy needs to know who asks.
   * Decided once per request.
   */
  scope(request: CrudRequest, rows: RowState = 'live'): Maybe<Scope> {
    const known = request.scopes.get(this.#scopeKeys[rows]);
    if (known !== undefined) return known;
    const admin = this.adminRule(request);
    const tenant = admin?.tenant === 'all' ? true : this.#tenantPart(request);
    if (admin !== undefined && (this.options.access === undefined || admin.access === false))
      return this.#decide(request, [tenant, admin.rows as Where | boolean], rows);
    const owned = this.owner === undefined ? undefined : this.#owned(this.owner, request);
    // Staff see what they were granted: the admin site is one more path to the rows.
    const given = admin === undefined ? this.#given(request) : (admin.rows as Where | boolean);
    const granted = this.#granted(request, VIEW);
    if (isSettled(owned) && isSettled(given) && isSettled(granted))
      return this.#decide(request, [tenant, ownedOrGranted(owned, granted), given], rows, isDeciding(owned, granted));
    return Promise.all([owned, given, granted]).then(([own, more, grant]) =>
      this.#decide(request, [tenant, ownedOrGranted(own, grant), more], rows, isDeciding(own, grant)),
    );
  }

  /**
   * The rows at the end of a relation. A caller whom the policy cannot tell the rows of, without a tenant or without credentials, sees none there:
   * what is out of reach is null or left out, never an error.
   */
  scopeOfEdge(request: CrudRequest): Maybe<Scope> {
    return this.#tells(request) ? this.scope(request) : { where: false, compiled: this.compile(request, false) };
  }

  #tells(request: CrudRequest): boolean {
    const { tenant, anonymous, access } = this.options;
    const admin = this.adminRule(request);
    if (tenant !== undefined && request.tenant === null && admin?.tenant !== 'all') return false;
    const needsUser = this.owner !== undefined && anonymous === undefined && access?.admitsAnonymous !== true;
    return !needsUser || request.user !== null || admin !== undefined;
  }

  /** What the admin site shows of the rows, when it asks. Rows of a model that is not in the site are reached as on the API. */
  adminRule({ isAdmin }: CrudRequest): AnyResourceOptions['admin'] {
    return isAdmin ? this.options.admin : undefined;
  }

  /** The rows a write may reach. Rows that the caller sees, but may not do this to, are told apart: 403 instead of 404. */
  writeScope(request: CrudRequest, rows: RowState = 'live'): Maybe<WriteScope> {
    const { access } = this.options;
    return access === undefined ? this.scope(request, rows) : this.#allowedScope(request, rows, access);
  }

  async #allowedScope(request: CrudRequest, rows: RowState, access: RowAccess): Promise<WriteScope> {
    const scope = await this.scope(request, rows);
    if (this.adminRule(request)?.access === false) return scope;
    const action = access.actionOf(request.action);
    if (action === null || action === VIEW) return scope;
    // A write that no action is named for is not let through: start-up refuses such operations.
    if (action === undefined) throw new Error(`No action is known for "${request.action}".`);
    const owned = this.owner === undefined ? undefined : await this.#owned(this.owner, request);
    const where = ownedOrGranted(owned, await this.#granted(request, action));
    return { ...scope, allowed: { action, compiled: this.compile(request, where) } };
  }

  #granted(request: CrudRequest, action: string): Maybe<Where | boolean | undefined> {
    return this.options.access?.condition(this.accessContext(request), action);
  }

  accessContext(request: CrudRequest, db: Db = this.database(request)): AccessContext {
    return { db, caller: callerOf(request), model: this.model, request, permission: request.context, owner: this.owner?.column };
  }

  #decide(request: CrudRequest, parts: readonly (Where | boolean)[], rows: RowState, byAccess = false): Maybe<Scope> {
    const where = every(this.softDelete === undefined ? parts : [...parts, ...this.#statePart(rows)]);
    // A deleted row may belong to a deleted one: callers who saw it through that one still do.
    const related = rows === 'live' ? 'live' : 'any';
    const needed = this.loadScopes(request, where, related);
    const compile = (): Scope => {
      const scope = { where, compiled: this.compile(request, where, related), byAccess };
      request.scopes.set(this.#scopeKeys[rows], scope);
      return scope;
    };
    return needed === undefined ? compile() : needed.then(compile);
  }

  #statePart(rows: RowState): Where[] {
    if (this.softDelete === undefined || rows === 'any') return [];
    return [{ [this.softDelete.deletedAt]: rows === 'live' ? null : { isnull: false } } as Where];
  }

  /** Checks a condition on this model; relations in it lead to the rows the caller may see there. */
  compile(request: CrudRequest, where: Where | boolean, related: RowState = 'live'): CompiledWhere {
    return compileWhere(this.model, where, (name, model) => this.#policyOf(model)?.whereRelation(request, name, related));
  }

  /** Why a condition of the declaration cannot be compiled; undefined when it can. Asked at start-up, when there is no caller. */
  refusalOf(where: Where | boolean): string | undefined {
    return this.#refusal(where)?.message;
  }

  /** Whether columns can hold the values of a condition. What else is wrong with it is found when it is compiled for the caller. */
  canHoldValuesOf(where: Where | boolean): boolean {
    return !hasCode(this.#refusal(where)?.cause, 'value_not_storable');
  }

  #refusal(where: Where | boolean): Error | undefined {
    try {
      compileWhere(this.model, where, (name, model) => {
        const edge = this.#policyOf(model)?.edge(name);
        return edge === undefined ? undefined : { kind: edge.kind, model: edge.target.model, column: edge.column };
      });
      return undefined;
    } catch (error) {
      // What is wrong with a relation itself is a fault of its own.
      return hasCode(error, 'invalid_where') ? error : undefined;
    }
  }

  /** Decides the rows of every policy that relations in the condition lead to. Undefined when there is nothing to wait for. */
  loadScopes(request: CrudRequest, where: unknown, related: RowState = 'live'): Promise<void> | undefined {
    const targets = this.#related(where, undefined);
    if (targets === undefined) return undefined;
    const pending = [...targets].map((target) => target.scope(request, related)).filter((scope) => scope instanceof Promise);
    return pending.length === 0 ? undefined : Promise.all(pending).then(() => undefined);
  }

  /** Whether a condition leads to rows of others: then what it means depends on the caller. */
  namesRelations(where: unknown): boolean {
    return this.#related(where, undefined) !== undefined;
  }

  /** The policies of relations in a condition, added to those found so far. Undefined while there are none: most conditions name columns only. */
  #related(where: unknown, before: Set<Policy> | undefined): Set<Policy> | undefined {
    let found = before;
    if (Array.isArray(where)) for (const each of where) found = this.#related(each, found);
    else if (typeof where === 'object' && where !== null && Object.getPrototypeOf(where) === Object.prototype) {
      for (const name of Object.keys(where)) {
        const inner = (where as Readonly<Record<string, unknown>>)[name];
        if (name === 'and' || name === 'or' || name === 'not') found = this.#related(inner, found);
        else if (!this.statements.byName.has(name)) {
          const edge = this.edge(name);
          if (edge === undefined) continue;
          found = (found ?? new Set()).add(edge.target);
          for (const each of Object.values(inner ?? {})) found = edge.target.#related(each, found);
        }
      }
    }
    return found;
  }

  #tenantPart({ tenant }: CrudRequest): Where | boolean {
    const column = this.options.tenant as string | undefined;
    if (column === undefined) return true;
    if (tenant === null) throw coreErrors.tenant_required();
    return this.#identity(column, tenant);
  }

  #owned({ column, unless }: OwnerRule, request: CrudRequest): Maybe<Where | boolean> {
    const { user } = request;
    if (user === null) {
      // What anonymous callers see is said by `anonymous`; without it anonymous callers are refused.
      if (this.options.anonymous !== undefined) return true;
      if (this.options.access?.admitsAnonymous === true) return false;
      throw coreErrors.not_authenticated();
    }
    // A deactivated user owns nothing, even if an authenticator admits them.
    if (!user.is_active) return false;
    const own = this.#identity(column, user.id);
    if (unless === undefined) return own;
    const verdict = unless.evaluate(request.context);
    return verdict instanceof Promise ? verdict.then((settled) => (settled === true ? true : own)) : verdict === true ? true : own;
  }

  #given(request: CrudRequest): Maybe<Where | boolean> {
    const { rows, anonymous, unscoped, access } = this.options;
    if (request.user === null) {
      if (anonymous !== undefined) return anonymous as Where | boolean;
      // A tenant's rows, or everybody's, are for all callers that the permission admits; rows by user are not for callers without one.
      return rows === undefined && (unscoped === true || access === undefined || access.admitsAnonymous === true);
    }
    return rows === undefined ? true : (rows(callerOf(request) as CrudCaller<User>) as Maybe<Where | boolean>);
  }

  /** The rows of a user or tenant, whatever the kind of the column. An id the column cannot hold has no rows. */
  #identity(name: string, text: string): Where | boolean {
    const column = this.statements.column(name);
    const value = identityValue(column, text);
    return value === undefined ? false : ({ [name]: value } as Where);
  }

  /** Where relations of a condition lead, with the policy of the target. Its scope is known by then: see `loadScopes`. */
  whereRelation(request: CrudRequest, name: string, related: RowState): WhereRelation | undefined {
    const edge = this.edge(name);
    if (edge === undefined) return undefined;
    const { kind, target, column, where } = edge;
    const scope = request.scopes.get(target.#scopeKeys[related]);
    if (scope === undefined) throw new Error(`The rows of "${target.name}" were not decided before a condition asked for them.`);
    return { kind, model: target.model, column, where: every([scope.where, ...(where === undefined ? [] : [where])]) };
  }
}

/** What every caller sees of a policy without permissions about columns. */
export const EVERYTHING: Visibility = Object.freeze({ mask: '', verdicts: [] });

/** A column that no two rows share and every row has: the key, or one beside a key of several columns. */
export function uniqueColumn({ primaryKey, table }: Model, { key, columns }: ModelStatements): ModelColumn | undefined {
  if (primaryKey.length === 1) return key[0];
  const isUnique = (name: string) =>
    table.indexes.some(
      ({ columns: [first, ...more], unique, where }) => unique && where === undefined && first === name && more.length === 0,
    );
  return columns.find(({ name, nullable }) => !nullable && isUnique(name));
}

/** Columns that may be changed: a key never is, also one of several columns. */
export function withoutKey(policy: Policy, columns: Columns): Columns {
  return Object.fromEntries(Object.entries(columns).filter(([name]) => !isKey(policy, name)));
}

/** Whether the column is the key of a row, or part of it. */
export function isKey({ model, key }: Policy, name: string): boolean {
  return name === key.name || model.primaryKey.includes(name);
}

function isSettled<T>(value: Maybe<T>): value is T {
  return !(value instanceof Promise);
}

/** All conditions at once. What a rule returns is data, and must stay data: anything else is refused when it is compiled. */
export function every(parts: readonly (Where | boolean)[]): Where | boolean {
  let only: Where | boolean = true;
  let more: Where[] | undefined;
  for (const part of parts) {
    if (part === false) return false;
    if (part === true) continue;
    if (only === true) only = part;
    else (more ??= [only]).push(part);
  }
  return more === undefined ? only : ({ and: more } as Where);
}

function ownedOrGranted(owned: Where | boolean | undefined, granted: Where | boolean | undefined): Where | boolean {
  if (granted === undefined) return owned ?? true;
  if (owned === undefined) return granted;
  if (owned === true || granted === true) return true;
  return { or: [owned, granted].filter((part) => part !== false) } as Where;
}

/** Callers who see every row by their owner's rule, or were granted all or nothing, are not looked up by what they were granted. */
function isDeciding(owned: Where | boolean | undefined, granted: Where | boolean | undefined): boolean {
  return owned !== true && typeof granted === 'object';
}

/** A user's id or a tenant's key as the column holds it; undefined when it cannot. */
export function identityValue(column: ModelColumn, text: string): unknown {
  const { kind } = resolveReference(column.settings);
  try {
    const value = kind === 'int' ? Number(text) : kind === 'bigint' ? BigInt(text) : text;
    column.encode(value);
    return value;
  } catch {
    return undefined;
  }
}
