import type { User } from '../../auth/people/principal.ts';
import { invalidRule, type RuleKind, ruleResult } from '../../auth/rights/rule-result.ts';
import type { Db } from '../../db/engine/db.ts';
import { identityValue } from '../../db/sql/identity-value.ts';
import type { Model } from '../../db/declare/model.ts';
import type { ModelStatements } from '../../db/sql/model-statements.ts';
import { compileWhere, type CompiledWhere } from '../../db/sql/where/compile-where.ts';
import { NotTrue } from '../../db/sql/where/not-true.ts';
import type { JoinedTable, Where, WhereRelation } from '../../db/sql/where/where.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { isKitError } from '../../errors/kit-error.ts';
import type { CrudCaller } from '../declare/crud-caller.ts';
import { type AnyResourceOptions, type AudienceRule, hasRowRule } from '../declare/resource.ts';
import type { OwnerRule, TenantRule } from '../declare/scope-rule.ts';
import { type AccessContext, type RowAccess, VIEW } from '../declare/row-access.ts';
import { callerOf, type CrudRequest, type Scope, type WriteScope } from './crud-request.ts';
import type { SoftDelete } from './soft-delete.ts';
import { isPlainObject } from '../../options/value-rule.ts';

/** Which rows of a table that soft-deletes: those that are there, those that were deleted, both. */
export type RowState = 'live' | 'deleted' | 'any';

/** What row conditions are made of. */
export interface ScopedPolicy {
  readonly name: string;
  readonly model: Model;
  readonly options: AnyResourceOptions;
  readonly owner: OwnerRule | undefined;
  readonly tenant: TenantRule | undefined;
  readonly hasTenants: boolean;
  readonly softDelete: SoftDelete | undefined;
  readonly audienceRule: AudienceRule | undefined;
  readonly statements: ModelStatements;
  readonly rows: RowScope;
  hasColumn(name: string): boolean;
  edge(name: string): ScopedEdge | undefined;
  database(request: CrudRequest): Db;
}

/** What the rules of a resource say of the rows, each by itself. Absent: the resource has no such rule. */
interface RowRules {
  readonly tenant: Where | boolean;
  readonly owned?: Where | boolean | undefined;
  readonly access?: Where | boolean | undefined;
  readonly rows: Where | boolean;
}

interface ScopedEdge {
  readonly kind: 'one' | 'many';
  readonly target: ScopedPolicy;
  readonly column: string;
  readonly where: Where | undefined;
  readonly seenWithRow: Where | undefined;
  readonly table: JoinedTable | undefined;
  readonly isLoaded: boolean;
}

/** Which rows of a resource a caller may see and change, as conditions of SQL. Every path to the rows asks here. */
export class RowScope {
  readonly #policy: ScopedPolicy;
  readonly #policyOf: (model: Model) => ScopedPolicy | undefined;
  /** A request stores the rows of each state under these. */
  readonly #keys: Readonly<Record<RowState, object>> = { live: this, deleted: {}, any: {} };
  /** A request whose caller the policy cannot identify stores under this that relations lead to no rows. */
  readonly #unreached = {};

  constructor(policy: ScopedPolicy, policyOf: (model: Model) => ScopedPolicy | undefined) {
    this.#policy = policy;
    this.#policyOf = policyOf;
  }

  /**
   * The rows the caller may see, as a checked condition. Throws 403 `tenant_required` and 401 where the policy needs to know who asks.
   * Decided once per request.
   */
  async visible(request: CrudRequest, rows: RowState = 'live'): Promise<Scope> {
    return this.#visible(request, rows, []);
  }

  /** `above` are the policies whose rules led here. A rule that leads back to one of them has no end: no statement can have it. */
  async #visible(request: CrudRequest, rows: RowState, above: readonly ScopedPolicy[]): Promise<Scope> {
    const known = request.scopes.get(this.#keys[rows]);
    if (known !== undefined) return known;
    if (above.includes(this.#policy)) throw endless([...above, this.#policy]);
    const {
      audienceRule: audience,
      options: { access },
    } = this.#policy;
    // The rows of an audience are for users: whoever they belong to, nobody else is known to be one of it.
    if (audience !== undefined && request.user === null) throw coreErrors.not_authenticated();
    const tenant = audience?.tenant === 'all' ? true : await this.#tenantPart(request);
    if (audience !== undefined && (access === undefined || audience.access === false))
      return this.#decide(request, { tenant, rows: await this.#ofAudience(request, audience) }, rows, above);
    if (audience === undefined && !hasRowRule(this.#policy.options)) return this.#decide(request, { tenant, rows: false }, rows, above);
    const owned = await this.#owned(request);
    // An audience sees what it was granted: it is one more path to the rows.
    const given = audience === undefined ? await this.#given(request) : await this.#ofAudience(request, audience);
    const granted = await this.#granted(request, VIEW);
    return this.#decide(request, { tenant, owned, access: granted, rows: given }, rows, above);
  }

  /** The rows at the end of a to-one relation of a row that the caller sees. */
  async throughRow(request: CrudRequest, { seenWithRow }: Pick<ScopedEdge, 'seenWithRow'>): Promise<Scope> {
    if (seenWithRow === undefined) return this.ofEdge(request);
    const where = this.#seenWithRow(seenWithRow);
    return { where, compiled: this.compile(request, where) };
  }

  #seenWithRow(condition: Where, rows: RowState = 'live'): Where | boolean {
    return every([condition, ...this.#statePart(rows)]);
  }

  /**
   * The rows at the end of a relation. A caller without the tenant or the credentials that the policy, or one that its rule leads to, needs sees
   * none there: what is out of reach is null or left out, never an error.
   */
  async ofEdge(request: CrudRequest, rows: RowState = 'live'): Promise<Scope> {
    try {
      return await this.visible(request, rows);
    } catch (error) {
      if (!isKitError(error, 'tenant_required') && !isKitError(error, 'not_authenticated')) throw error;
      const none = { where: false, compiled: this.compile(request, false) };
      request.scopes.set(this.#unreached, none);
      return none;
    }
  }

  /** The rows a write may reach. Rows that the caller sees, but may not do this to, are told apart: 403 instead of 404. */
  async forWrite(request: CrudRequest, rows: RowState = 'live'): Promise<WriteScope> {
    const { access } = this.#policy.options;
    return access === undefined ? this.visible(request, rows) : this.#allowed(request, rows, access);
  }

  async #allowed(request: CrudRequest, rows: RowState, access: RowAccess): Promise<WriteScope> {
    const scope = await this.visible(request, rows);
    if (this.#policy.audienceRule?.access === false) return scope;
    const action = access.actionOf(request.action);
    if (action === null || action === VIEW) return scope;
    // A write that no action is named for is not the owner's either. Start-up refuses such operations; programs and the admin site get here.
    const owned = action === undefined ? undefined : await this.#owned(request);
    const needed = action ?? request.action;
    const granted = await this.#granted(request, needed);
    const where = ownedOrGranted(owned, granted);
    return { ...scope, allowed: { action: needed, compiled: this.#compileRules(request, where, { access: granted }) } };
  }

  async #granted(request: CrudRequest, action: string): Promise<Where | boolean | undefined> {
    const { access } = this.#policy.options;
    if (access === undefined) return undefined;
    const context = this.accessContext(request);
    const rows =
      action === VIEW && request.accessRows !== undefined ? request.accessRows(access, context) : access.condition(context, action);
    return ruleResult('access', this.#place, await rows);
  }

  get #place(): string {
    return `resource(${this.#policy.model.name})`;
  }

  accessContext(request: CrudRequest, db: Db = this.#policy.database(request)): AccessContext {
    const { model, owner } = this.#policy;
    return { db, caller: callerOf(request), model, request, permission: request.context, owner: owner?.column };
  }

  async #decide(
    request: CrudRequest,
    { tenant, owned, access, rows: given }: RowRules,
    rows: RowState,
    above: readonly ScopedPolicy[],
  ): Promise<Scope> {
    const where = every([tenant, ownedOrGranted(owned, access), given, ...this.#statePart(rows)]);
    // A deleted row may belong to a deleted one: callers who saw it through that one still do.
    const related = rows === 'live' ? 'live' : 'any';
    await this.#loadRule(request, where, related, [...above, this.#policy]);
    const compiled = this.#compileRules(request, where, { rows: given, access }, related);
    const scope = { where, compiled, byAccess: isDeciding(owned, access) };
    request.scopes.set(this.#keys[rows], scope);
    return scope;
  }

  #statePart(rows: RowState): Where[] {
    const { softDelete } = this.#policy;
    if (softDelete === undefined || rows === 'any') return [];
    return [{ [softDelete.deletedAt]: rows === 'live' ? null : { isnull: false } } as Where];
  }

  /** Checks a condition on this model; relations in it lead to the rows the caller may see there, which were decided by `load`. */
  compile(request: CrudRequest, where: Where | boolean, related: RowState = 'live'): CompiledWhere {
    return compileWhere(this.#policy.model, where, (name, model) => {
      const policy = this.#policyOf(model);
      return policy === undefined ? undefined : policy.rows.#relation(request, name, related);
    });
  }

  /** A condition with the results of rules in it. Where it cannot be compiled, the error names the rule. */
  #compileRules(
    request: CrudRequest,
    where: Where | boolean,
    rules: { readonly [K in RuleKind]?: Where | boolean | undefined },
    related: RowState = 'live',
  ): CompiledWhere {
    try {
      return this.compile(request, where, related);
    } catch (error) {
      if (!isKitError(error, 'invalid_where')) throw error;
      for (const [kind, each] of Object.entries(rules) as [RuleKind, Where | boolean | undefined][]) {
        const refusal = each === undefined ? undefined : this.#refusal(each);
        if (refusal !== undefined)
          throw invalidRule(kind, this.#place, `returned a condition that cannot be used: ${refusal.message}`, refusal);
      }
      throw error;
    }
  }

  /** A condition that a request or the application gave, with everything its relations need. */
  async compiled(request: CrudRequest, where: Where | boolean): Promise<CompiledWhere> {
    await this.load(request, where);
    return this.compile(request, where);
  }

  /** A condition that decides who sees a row, like {@link visible}: refused where the caller is not known to a policy that it leads to. */
  async compiledRule(request: CrudRequest, where: Where | boolean): Promise<CompiledWhere> {
    await this.#loadRule(request, where, 'live');
    return this.#compileRules(request, where, { 'permission rows': where });
  }

  /** Why a condition of the declaration cannot be compiled; undefined when it can. Asked at start-up, when there is no caller. */
  refusalOf(where: Where | boolean): string | undefined {
    return this.#refusal(where)?.message;
  }

  /** True when columns can store the values of a condition that a rule returned. Every other problem of it is the rule's: `invalid_rule`. */
  canStoreValuesOf(kind: RuleKind, owner: string, where: Where | boolean): boolean {
    const refusal = this.#refusal(where);
    if (refusal === undefined) return true;
    if (isKitError(refusal.cause, 'value_not_storable')) return false;
    throw invalidRule(kind, owner, `returned a condition that cannot be used: ${refusal.message}`, refusal);
  }

  #refusal(where: Where | boolean): Error | undefined {
    try {
      compileWhere(this.#policy.model, where, (name, model) => {
        const edge = this.#policyOf(model)?.edge(name);
        return edge === undefined || edge.isLoaded ? undefined : { kind: edge.kind, model: edge.target.model, column: edge.column };
      });
      return undefined;
    } catch (error) {
      // A wrong relation is an error of its own.
      return isKitError(error, 'invalid_where') ? error : undefined;
    }
  }

  /** Decides the rows of every policy that relations in the condition lead to. */
  async load(request: CrudRequest, where: unknown): Promise<void> {
    for (const target of this.#related(where, new Set())) await target.rows.ofEdge(request);
  }

  /** Unlike {@link load} it refuses callers who are not known there: a rule with `not` would show more without the rows that it leads to. */
  async #loadRule(request: CrudRequest, where: Where | boolean, related: RowState, above: readonly ScopedPolicy[] = []): Promise<void> {
    for (const target of this.#related(where, new Set())) await target.rows.#visible(request, related, above);
  }

  /** True when a condition leads to rows of others: then its meaning depends on the caller. */
  namesRelations(where: unknown): boolean {
    return this.#related(where, new Set()).size > 0;
  }

  /** Adds the policies of relations in a condition to those found so far. */
  #related(where: unknown, found: Set<ScopedPolicy>): Set<ScopedPolicy> {
    if (Array.isArray(where)) for (const each of where) this.#related(each, found);
    else if (where instanceof NotTrue) this.#related(where.of, found);
    else if (isPlainObject(where)) {
      for (const [name, inner] of Object.entries(where)) {
        if (name === 'and' || name === 'or' || name === 'not') this.#related(inner, found);
        else if (!this.#policy.hasColumn(name)) {
          const edge = this.#policy.edge(name);
          if (edge === undefined) continue;
          if (edge.seenWithRow === undefined) found.add(edge.target);
          for (const each of Object.values(inner ?? {})) edge.target.rows.#related(each, found);
        }
      }
    }
    return found;
  }

  async #tenantPart({ tenant: key, context }: CrudRequest): Promise<Where | boolean> {
    const { tenant, hasTenants } = this.#policy;
    if (tenant === undefined) return true;
    const { column, none, unless } = tenant;
    if (none !== undefined && !hasTenants) return true;
    if (unless !== undefined && (await unless.evaluate(context)) === true) return true;
    if (key !== null) return this.#identity(tenant, key);
    if (none === undefined) throw coreErrors.tenant_required();
    return { [column]: none } as Where;
  }

  async #owned(request: CrudRequest): Promise<Where | boolean | undefined> {
    const { owner, options } = this.#policy;
    if (owner === undefined) return undefined;
    const { user } = request;
    if (user === null) {
      // `anonymous` says which rows anonymous callers see; without it they are refused.
      if (options.anonymous !== undefined) return true;
      if (options.access?.admitsAnonymous === true) return false;
      throw coreErrors.not_authenticated();
    }
    return this.#ownedBy(owner, user, request);
  }

  async #ownedBy(owner: OwnerRule, user: User, request: CrudRequest): Promise<Where | boolean> {
    const { unless } = owner;
    // A deactivated user owns nothing, even if an authenticator admits them.
    if (!user.is_active) return false;
    if (unless !== undefined && (await unless.evaluate(request.context)) === true) return true;
    return this.#identity(owner, user.id);
  }

  async #given(request: CrudRequest): Promise<Where | boolean> {
    const { rows, anonymous, unscoped, access } = this.#policy.options;
    if (request.user === null) {
      if (anonymous !== undefined) return anonymous as Where | boolean;
      // A tenant's rows, or everybody's, are for all callers that the permission admits; rows by user are not for callers without one.
      return rows === undefined && (unscoped === true || access === undefined || access.admitsAnonymous === true);
    }
    return rows === undefined ? true : ruleResult('rows', this.#place, await rows(callerOf(request) as CrudCaller<User>));
  }

  async #ofAudience(request: CrudRequest, { rows }: AudienceRule): Promise<Where | boolean> {
    if (typeof rows !== 'function') return rows;
    // Keys of the rows that a relation starts from are not those of the rows at its end.
    const { filters, keys } = request.asked?.policy === this.#policy ? request.asked : NOTHING_ASKED;
    return ruleResult(
      'rows',
      this.#place,
      await rows(callerOf(request) as CrudCaller<User>, { db: this.#policy.database(request), filters, keys }),
    );
  }

  /** The rows of a user or tenant. An id that the column cannot store has no rows. */
  #identity({ column, none }: OwnerRule | TenantRule, text: string): Where | boolean {
    const value = identityValue(this.#policy.statements.column(column), text);
    if (value === undefined || value === none) return false;
    return { [column]: none === undefined ? value : { eq: value, ne: none } } as Where;
  }

  /** Where relations of a condition lead, with the rows the caller sees there. */
  #relation(request: CrudRequest, name: string, related: RowState): WhereRelation | undefined {
    const edge = this.#policy.edge(name);
    if (edge === undefined || edge.isLoaded) return undefined;
    const { kind, target, column, where, seenWithRow, table } = edge;
    if (seenWithRow !== undefined)
      return { kind, model: target.model, column, where: target.rows.#seenWithRow(seenWithRow, related), table };
    const { rows } = target;
    const scope = request.scopes.get(rows.#keys[related]) ?? request.scopes.get(rows.#unreached);
    if (scope === undefined) throw new Error(`The rows of "${target.name}" were not decided before a condition asked for them.`);
    return { kind, model: target.model, column, where: every([scope.where, ...(where === undefined ? [] : [where])]) };
  }
}

const NOTHING_ASKED = { filters: {}, keys: null } as const;

function endless(policies: readonly ScopedPolicy[]): Error {
  const path = policies.map(({ name }) => `"${name}"`).join(' → ');
  return new Error(
    `A rule about visible rows leads back to its own rows: ${path}. Decide by columns of the row, such as its owner, or use whereSql() with a recursive query.`,
  );
}

/** All conditions together. Only `true` stands for every row: a part that is anything else stays, and is refused where it is compiled. */
export function every(parts: readonly (Where | boolean)[]): Where | boolean {
  if (parts.includes(false)) return false;
  const conditions = parts.filter((part) => part !== true);
  if (conditions.length === 0) return true;
  return conditions.length === 1 ? (conditions[0] as Where) : ({ and: conditions } as Where);
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
