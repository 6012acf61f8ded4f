import type { Membership } from '../auth/people/membership.ts';
import type { Principal, User } from '../auth/people/principal.ts';
import { ruleResult } from '../auth/rights/rule-result.ts';
import type { Db } from '../db/engine/db.ts';
import { coreErrors } from '../errors/core-errors.ts';
import type { KitError } from '../errors/kit-error.ts';
import { type OptionRules, readOptions, requireArguments } from '../options/read-options.ts';
import { aFunction, either, filledText, instanceOf, listOf, required, text } from '../options/value-rule.ts';

/** What a permission may look at. The body is not read yet when a permission runs. */
export interface PermissionContext {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly principal: Principal | null;
  readonly user: User | null;
  /** The tenant that the caller acts in: what `createApp({ tenant })` found. Null without one. */
  readonly tenant: string | null | Promise<string | null>;
  /** What the caller is in the tenant: what `createApp({ membership })` returned. Undefined outside requests. */
  readonly membership?: Membership | null | Promise<Membership | null> | undefined;
  /** True where the tenant depends on arguments of a call that are not known yet: then it is null, and `unknown` is the verdict. */
  readonly isTenantOpen?: boolean | undefined;
  /** True where nothing but the tenant is missing, and each call of the tool can name it. */
  readonly takesTenant?: boolean | undefined;
  /** Where requests name their tenant: "in the header `X-Tenant`". Undefined or empty: not declared. */
  readonly namesTenant?: string | undefined;
  /** Roles that manage a tenant, where the app's tenants say so. */
  readonly tenantManagers?: readonly string[] | undefined;
  /** The scope the operation declares, if any. */
  readonly scope: string | undefined;
  /** The audience of the controller: `staff`. Null or undefined: the resource's own rules, or no resource. */
  readonly audience?: string | null | undefined;
  readonly db: Db;
  /** The app's named rules, for `hasRule('name')`. */
  readonly rules?: Readonly<Record<string, Rule>> | undefined;
}

/** `unknown`: cannot be said before the object is loaded. */
export type Verdict = true | false | 'unknown';
type Answer<T> = T | Promise<T>;

/** A rule of the app: `object` is undefined until `authorize(object)`; answer `'unknown'` to ask for it. */
export type Rule = (context: PermissionContext, object: unknown) => Answer<Verdict>;

/** A leaf's behaviour. */
export interface PermissionDefinition {
  /** Names the permission in `kit inspect` and in the OpenAPI document. */
  readonly name: string;
  /** True, false, or `unknown` while the object is not known. */
  evaluate(context: PermissionContext, object: unknown): Answer<Verdict>;
  /** Why the verdict was false. Defaults to 401 for anonymous callers and 403 for everyone else. */
  denial?(context: PermissionContext, object: unknown): Answer<KitError>;
  /**
   * Which rows of a table it holds for, so that a list is filtered where one object is decided by `evaluate`. Without it a permission about
   * objects cannot guard a list.
   */
  rows?(context: PermissionContext): Answer<RowCondition>;
  /**
   * The columns of the object that `evaluate` reads; empty where it reads none. Lists then select these only. A function where they are known
   * once the app has started; undefined from it is the default: the permission may read every column.
   */
  readonly requires?: readonly string[] | (() => readonly string[] | undefined);
  /** Called where the object does not exist, so that it takes the work that a hidden object takes: the time must not tell them apart. */
  absent?(context: PermissionContext): Answer<void>;
  /** A stable mark for start-up checks and documents, e.g. `has_scopes`. */
  readonly kind?: string;
  /** Of `hasRule('name')`: the named rule of the app that it asks for. */
  readonly rule?: string;
}

const definitionRules: OptionRules<PermissionDefinition> = {
  name: required(filledText),
  evaluate: required(aFunction),
  denial: aFunction,
  rows: aFunction,
  requires: either('a list of columns, or a function that returns one', listOf(filledText), aFunction),
  absent: aFunction,
  kind: text,
  rule: text,
};
/** A condition on the rows of some table, as data (`Where` of the database ring); true is every row, false none. */
export type RowCondition = object | boolean;

export type Combinator = 'all' | 'any' | 'not';

/**
 * A condition on the caller, combined with `.and`, `.or` and `.not`; immutable.
 * `U` is what is known of the caller once it holds: a handler behind `isAuthenticated` gets `user: User`, not `User | null`.
 */
export class Permission<out U extends User | null = User | null> {
  declare readonly caller: U;
  readonly name: string;
  readonly kind: string | undefined;
  /** The app's named rule this leaf asks for, if any. */
  readonly rule: string | undefined;
  readonly combinator: Combinator | undefined;
  readonly parts: readonly Permission[];
  readonly #evaluate: PermissionDefinition['evaluate'];
  readonly #denial: PermissionDefinition['denial'];
  readonly #rows: PermissionDefinition['rows'];
  readonly #absent: PermissionDefinition['absent'];
  readonly #requires: PermissionDefinition['requires'];

  constructor(definition: PermissionDefinition, combinator?: Combinator, parts: readonly Permission[] = []) {
    readOptions('new Permission()', definition, definitionRules);
    this.name = definition.name;
    this.kind = definition.kind;
    this.rule = definition.rule;
    this.combinator = combinator;
    this.parts = parts;
    this.#evaluate = definition.evaluate.bind(definition);
    this.#denial = definition.denial?.bind(definition);
    this.#rows = definition.rows?.bind(definition);
    this.#absent = definition.absent?.bind(definition);
    this.#requires = definition.requires;
  }

  /** Three-valued: without an object, rules about objects are `unknown`. */
  evaluate(context: PermissionContext, object?: unknown): Answer<Verdict> {
    const verdict = this.#evaluate(context, object) as unknown;
    if (verdict === true || verdict === false || verdict === 'unknown') return verdict;
    return this.#later(verdict);
  }

  /** A rule that returned nothing must not count as "no", which `not` would turn into "yes". */
  async #later(pending: unknown): Promise<Verdict> {
    return ruleResult('permission', this.name, await pending);
  }

  /** The rows it holds for; undefined when it cannot say. Parts that need no object are decided here. */
  async rows(context: PermissionContext): Promise<RowCondition | undefined> {
    const verdict = await this.evaluate(context);
    if (verdict !== 'unknown') return verdict;
    if (this.combinator === undefined)
      return this.#rows === undefined ? undefined : ruleResult('permission rows', this.name, await this.#rows(context));
    const parts = await Promise.all(this.parts.map((part) => part.rows(context)));
    if (parts.includes(undefined)) return undefined;
    const conditions = parts.map((part) => (part === true ? { and: [] } : part === false ? { or: [] } : part));
    return this.combinator === 'not' ? { not: conditions[0] } : this.combinator === 'all' ? { and: conditions } : { or: conditions };
  }

  /** Whether {@link rows} can say which rows: known from the declaration alone. */
  get hasRows(): boolean {
    return this.combinator === undefined ? this.#rows !== undefined : this.parts.every((part) => part.hasRows || !part.mayNeedObject);
  }

  /** The columns of the object that it reads; undefined where it may read every column. */
  get requires(): readonly string[] | undefined {
    if (this.combinator === undefined) return typeof this.#requires === 'function' ? this.#requires() : this.#requires;
    const names: string[] = [];
    for (const { requires } of this.parts) {
      if (requires === undefined) return undefined;
      names.push(...requires);
    }
    return names;
  }

  /** Whether it is made of leaves that are about objects by their kind: owners, grants. A rule of the app may be, too; that is unknown before it runs. */
  get mayNeedObject(): boolean {
    return this.combinator === undefined ? objectKinds.has(this.kind ?? '') : this.parts.some((part) => part.mayNeedObject);
  }

  /** The object that the permission is about does not exist: does what it would do to hide one. */
  async absent(context: PermissionContext): Promise<void> {
    if (this.combinator === undefined) await this.#absent?.(context);
    // The first part that fails decides; of the others every part is asked.
    for (const part of this.combinator === 'all' ? this.parts.filter((each) => each.mayNeedObject).slice(0, 1) : this.parts)
      await part.absent(context);
  }

  /** The error that explains a false verdict. */
  denial(context: PermissionContext, object?: unknown): Answer<KitError> {
    return this.#denial?.(context, object) ?? defaultDenial(context);
  }

  and<V extends User | null>(other: Permission<V>): Permission<U & V> {
    return all(this as Permission, other as Permission) as Permission<U & V>;
  }

  or<V extends User | null>(other: Permission<V>): Permission<U | V> {
    return any<U | V>(this, other);
  }

  not(): Permission {
    return not(this);
  }

  toString(): string {
    return this.name;
  }
}

const objectKinds: ReadonlySet<string> = new Set(['is_owner', 'has_grant']);

/** One part that admits no anonymous caller is enough for all of them. */
type AllOf<U extends readonly (User | null)[]> = true extends { [K in keyof U]: null extends U[K] ? false : true }[number]
  ? User
  : User | null;

/** 401 when logging in could help, 403 otherwise. */
export function defaultDenial(context: PermissionContext): KitError {
  return context.principal === null ? coreErrors.not_authenticated() : coreErrors.permission_denied();
}

/**
 * Every part must hold: false if any is false, else unknown if any is unknown. The first false part explains the denial.
 *
 * @example
 * ```ts
 * class OrderController extends Controller {
 *   static override readonly permission = all(isAuthenticated, hasScopes());
 * }
 * ```
 */
export function all<const U extends readonly (User | null)[]>(
  ...parts: { readonly [K in keyof U]: Permission<U[K]> }
): Permission<AllOf<U>> {
  requireParts('all', parts);
  /** By request: the part that failed last, so that its denial does not ask again. */
  const failed = new WeakMap<object, { readonly object: unknown; readonly part: Permission }>();
  const evaluate = (context: PermissionContext, object: unknown) => {
    failed.delete(context);
    return fold(parts, context, object, false, (part) => failed.set(context, { object, part }));
  };
  const denial = async (context: PermissionContext, object: unknown) => {
    const last = failed.get(context);
    if (last !== undefined && last.object === object) return last.part.denial(context, object);
    for (const part of parts) {
      if ((await part.evaluate(context, object)) === false) return part.denial(context, object);
    }
    return defaultDenial(context);
  };
  return new Permission({ name: join(parts, ' & '), evaluate, denial }, 'all', parts);
}

/**
 * One part is enough: true if any is true, else unknown if any is unknown. A part that logging in would satisfy makes the denial a 401.
 *
 * @example
 * ```ts
 * class OrderController extends CrudController(orderResource, { permission: any(isStaff, isOwner()) }) {}
 * ```
 */
export function any<U extends User | null>(...parts: readonly Permission<U>[]): Permission<U> {
  requireParts('any', parts);
  const evaluate = (context: PermissionContext, object: unknown) => fold(parts, context, object, true);
  const denial = async (context: PermissionContext, object: unknown) => {
    const denials = await Promise.all(parts.map(async (part) => part.denial(context, object)));
    const specific = denials.find((each) => each.status === 401) ?? denials.find((each) => each.code !== 'permission_denied');
    return specific ?? denials[0] ?? defaultDenial(context);
  };
  return new Permission({ name: join(parts, ' | '), evaluate, denial }, 'any', parts);
}

/** Turns true and false around; unknown stays unknown. */
export function not(part: Permission): Permission {
  requireArguments('not()', { part }, { part: instanceOf(Permission, 'a permission, such as isStaff') });
  const evaluate = (context: PermissionContext, object: unknown) => {
    const verdict = part.evaluate(context, object);
    return verdict instanceof Promise ? verdict.then(invert) : invert(verdict);
  };
  // The caller already is what it must not be: logging in is not offered as a remedy.
  const denial = () => coreErrors.permission_denied();
  return new Permission({ name: `~${part.combinator === undefined ? part.name : `(${part.name})`}`, evaluate, denial }, 'not', [part]);
}

function invert(verdict: Verdict): Verdict {
  return verdict === 'unknown' ? 'unknown' : !verdict;
}

/** Stops at the verdict that decides; stays synchronous while the parts are. */
function fold(
  parts: readonly Permission[],
  context: PermissionContext,
  object: unknown,
  decisive: boolean,
  onDecisive?: (part: Permission) => void,
): Answer<Verdict> {
  return foldFrom(0, !decisive);

  function foldFrom(index: number, so: Verdict): Answer<Verdict> {
    let sum = so;
    for (let at = index; at < parts.length; at += 1) {
      const verdict = (parts[at] as Permission).evaluate(context, object);
      if (verdict instanceof Promise) {
        return verdict.then((settled) => (settled === decisive ? decided(at) : foldFrom(at + 1, merge(sum, settled))));
      }
      if (verdict === decisive) return decided(at);
      sum = merge(sum, verdict);
    }
    return sum;
  }

  function decided(index: number): Verdict {
    onDecisive?.(parts[index] as Permission);
    return decisive;
  }
}

function merge(sum: Verdict, next: Verdict): Verdict {
  return sum === 'unknown' || next === 'unknown' ? 'unknown' : next;
}

function join(parts: readonly Permission[], operator: string): string {
  return parts.map((part) => (part.combinator === undefined || part.combinator === 'not' ? part.name : `(${part.name})`)).join(operator);
}

function requireParts(name: string, parts: readonly Permission[]): void {
  if (parts.length === 0) throw new TypeError(`${name}() needs at least one permission`);
  for (const part of parts) {
    if (!(part instanceof Permission))
      throw new TypeError(`${name}() takes permissions, got ${typeof part}; call the factory, e.g. hasScopes()`);
  }
}

/** Whether a leaf of this kind takes part in the decision (a negated one does not count). */
export function includesKind(permission: Permission, kind: string): boolean {
  if (permission.kind === kind) return true;
  return permission.combinator !== 'not' && permission.parts.some((part) => includesKind(part, kind));
}

/** The named rules a permission asks for. */
export function rulesOf(permission: Permission): readonly string[] {
  return [...(permission.rule === undefined ? [] : [permission.rule]), ...permission.parts.flatMap(rulesOf)];
}
