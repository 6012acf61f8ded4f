import type { Where } from '../../db/sql/where/where.ts';
import { SqlCondition } from '../../db/sql/where/where-sql.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { FieldError, KitError } from '../../errors/kit-error.ts';
import { isMembers, isPlainObject, type Members } from '../../options/value-rule.ts';
import type { Membership } from '../people/membership.ts';
import type { Principal, User } from '../people/principal.ts';

/**
 * What each kind of rule returns. A rule is a function of the application whose result decides who may do what, or which rows are reached.
 * `undefined` belongs to none of them: a function that found no entry or forgot to return must not pass for one that allows everything.
 */
export interface RuleResults {
  /** `resource({ rows })`. */
  readonly rows: Where | boolean;
  /** `condition` of `resource({ access })`. */
  readonly access: Where | boolean;
  /** `where` of `filter()`. Asks for nothing with `{}`. */
  readonly filter: Where | boolean;
  /** `where` of a search backend. */
  readonly search: Where;
  /** `guard` of a transition: true, false, or the sentence that tells why not. */
  readonly guard: boolean | string;
  /** `resource({ validate })`: what is wrong with the values of a row. */
  readonly validate: readonly FieldError[];
  /** `resource({ events })`: the event and its audience; null publishes nothing. */
  readonly events: { readonly type: string; readonly data: object; readonly audience: object } | null;
  /** `evaluate` of a permission, and the rules of `hasRule()`. */
  readonly permission: boolean | 'unknown';
  /** `rows` of a permission, and of `hasRule()`. */
  readonly 'permission rows': Where | boolean;
  /** `condition` of a backend of grants. */
  readonly 'grant condition': Where | boolean;
  /** `decide` of a backend of grants. */
  readonly 'grant decision': boolean;
  /** `objectGrants({ isInTenant })`. */
  readonly isInTenant: boolean;
  /** `groupsOf` of a group directory. */
  readonly groupsOf: readonly string[];
  /** `hasActiveMember` of a group directory. */
  readonly hasActiveMember: boolean;
  /** `authenticate` of an authenticator. */
  readonly authenticate: Principal | null;
  /** `createApp({ tenant })`, and of a module. */
  readonly tenant: string | null;
  /** `createApp({ membership })`, and of a module. */
  readonly membership: Membership | null;
  /** What one user is in one tenant, in the list that `memberships` returns. */
  readonly memberships: Membership | null;
  /** `key` of a throttle, and `tenantThrottle({ tenant })`. */
  readonly 'throttle key': string | null;
  /** `rate` of a throttle. */
  readonly 'throttle rate': object | null;
  /** `idempotent: { anonymous }` of a route. */
  readonly 'idempotency caller': string;
  /** `findById` of a user directory, and `find` of an issuer of jwtBearer(). */
  readonly user: User | null;
  /** `tenant` of an issuer of jwtBearer(), as a function. */
  readonly 'token tenant': string | null;
  /** `scopes` and `groups` of an issuer of jwtBearer(), as functions. */
  readonly 'token names': readonly string[];
  /** `scan` of uploads(). */
  readonly scan: { readonly clean: true } | { readonly clean: false; readonly reason: string };
}

export type RuleKind = keyof RuleResults;

interface ResultType {
  /** Ends the sentence "It must return …". */
  readonly expected: string;
  readonly accepts: (value: unknown) => boolean;
}

const CONDITION = 'a condition with at least one column, such as { owner_id: user.id }, whereSql(…), true or false';
const nullable = (accepts: ResultType['accepts']) => (value: unknown) => value === null || accepts(value);
const isText = (value: unknown) => typeof value === 'string';
const isFlag = (value: unknown) => typeof value === 'boolean';
const isRowRule = (value: unknown) => typeof value === 'boolean' || (isCondition(value) && !hasEmptyPart(value));

/** The one table of rules. A kind that is not in it cannot be checked, and one that is must be in the test of wrong results. */
export const ruleKinds: { readonly [K in RuleKind]: ResultType } = Object.freeze({
  rows: { expected: CONDITION, accepts: isRowRule },
  access: { expected: CONDITION, accepts: isRowRule },
  filter: {
    expected: 'a condition such as { status: "open" }, {} where it asks for nothing, true or false',
    accepts: (value) => typeof value === 'boolean' || isCondition(value),
  },
  search: {
    expected: 'a condition with at least one column, whereSql(…), or { or: [] } for a text that nothing can match',
    accepts: (value) => isCondition(value) && !hasEmptyPart(value),
  },
  guard: { expected: 'true, false or the sentence that explains why not', accepts: (value) => isFlag(value) || isFilled(value) },
  validate: {
    expected: "a list of errors such as { location: ['body', 'name'], code, message }, [] where nothing is wrong",
    accepts: (value) => Array.isArray(value) && value.every(isFieldError),
  },
  events: {
    expected: 'null, or { type, data, audience } with an audience of owner, tenantKey or broadcast',
    accepts: nullable((value) => isObject(value) && isFilled(value['type']) && isObject(value['data']) && isAudience(value['audience'])),
  },
  permission: { expected: "true, false or 'unknown'", accepts: (value) => isFlag(value) || value === 'unknown' },
  'permission rows': { expected: CONDITION, accepts: isRowRule },
  'grant condition': { expected: CONDITION, accepts: isRowRule },
  'grant decision': { expected: 'true or false', accepts: isFlag },
  isInTenant: { expected: 'true or false', accepts: isFlag },
  groupsOf: { expected: 'a list of ids of groups', accepts: isTexts },
  hasActiveMember: { expected: 'true or false', accepts: isFlag },
  authenticate: {
    expected: 'null, or a principal: { user, scheme, scopes }',
    accepts: nullable(
      (value) =>
        isObject(value) && isUser(value['user']) && isText(value['scheme']) && (value['scopes'] === null || isTexts(value['scopes'])),
    ),
  },
  tenant: { expected: 'the id of a tenant, or null where there is none', accepts: nullable(isText) },
  membership: {
    expected: 'a membership such as { roles: ["admin"] }, or null for a user who is not a member',
    accepts: nullable(isMembership),
  },
  memberships: { expected: 'one membership, or null, for each question', accepts: nullable(isMembership) },
  'throttle key': { expected: 'the key of a budget, or null for a request that is not measured', accepts: nullable(isText) },
  'throttle rate': {
    expected: 'a rate, or null for a request that is not measured',
    accepts: nullable((value) => isObject(value) && typeof value['count'] === 'number' && typeof value['periodMs'] === 'number'),
  },
  'idempotency caller': { expected: 'a string that identifies the caller', accepts: isText },
  user: { expected: 'a user, or null for one who is unknown', accepts: nullable(isUser) },
  'token tenant': { expected: 'the id of a tenant, or null where there is none', accepts: nullable(isText) },
  'token names': { expected: 'a list of strings', accepts: isTexts },
  scan: {
    expected: '{ clean: true }, or { clean: false, reason }',
    accepts: (value) => isObject(value) && (value['clean'] === true || (value['clean'] === false && isText(value['reason']))),
  },
} satisfies { readonly [K in RuleKind]: ResultType });

/**
 * The result of a rule of the application, once it is known to be one. Throws `invalid_rule`: nothing is read or written by a rule that returned
 * something else. `owner` is what declares the rule: `resource(orders)`, `createApp()`.
 */
export function ruleResult<K extends RuleKind>(kind: K, owner: string, value: unknown): RuleResults[K] {
  const { accepts, expected } = ruleKinds[kind];
  if (accepts(value)) return value as RuleResults[K];
  throw invalidRule(kind, owner, `returned ${described(value)}. It must return ${expected}.`);
}

/** The error of a rule whose result cannot be used. The log names the rule; the caller learns nothing of it. */
export function invalidRule(kind: RuleKind, owner: string, problem: string, cause?: unknown): KitError {
  return coreErrors.invalid_rule({ message: `${owner}: the rule "${kind}" ${problem}`, cause });
}

const DEPTH_MAX = 64;

function isObject(value: unknown): value is Members {
  return isMembers(value) && !isPromise(value);
}

function isPromise(value: object): boolean {
  return typeof (value as Partial<PromiseLike<unknown>>).then === 'function';
}

/** Data, not an instance of a class: what a statement is made of has no behaviour. */
function isCondition(value: unknown): boolean {
  return value instanceof SqlCondition || isPlainObject(value);
}

/** Whether an object without members takes part in the decision: it would match every row. An empty `and` or `or` is written on purpose. */
function hasEmptyPart(where: unknown, depth = 0): boolean {
  // A deeper tree is rejected where it is compiled.
  if (depth > DEPTH_MAX) return false;
  if (Array.isArray(where)) return where.some((each) => hasEmptyPart(each, depth + 1));
  if (!isCondition(where) || where instanceof SqlCondition) return false;
  const { and, or, not } = where as Members;
  return Object.keys(where as object).length === 0 || [and, or, not].some((each) => hasEmptyPart(each, depth + 1));
}

function isFilled(value: unknown): boolean {
  return typeof value === 'string' && value.trim() !== '';
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}

function isFieldError(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { location, code, message } = value;
  return Array.isArray(location) && location[0] === 'body' && isFilled(code) && isFilled(message);
}

function isUser(value: unknown): boolean {
  return isObject(value) && isFilled(value['id']) && typeof value['is_active'] === 'boolean';
}

function isMembership(value: unknown): boolean {
  return isObject(value) && isTexts(value['roles']);
}

/** Each member that is there has a value: an audience whose tenant is undefined would be a wider one. */
function isAudience(value: unknown): boolean {
  if (!isObject(value) || Object.keys(value).length === 0) return false;
  return Object.entries(value).every(([name, each]) =>
    name === 'broadcast' ? each === true : (name === 'owner' || name === 'tenantKey') && isFilled(each),
  );
}

/** The kind of a value, never its content: it may be somebody's. */
function described(value: unknown): string {
  if (value === undefined || value === null) return String(value);
  if (Array.isArray(value)) return 'a list';
  if (typeof value !== 'object') return typeof value === 'boolean' ? String(value) : `a ${typeof value}`;
  if (isPromise(value)) return 'a promise';
  if (!isCondition(value)) return 'an instance of a class, or an object with wrong members';
  return Object.keys(value).length === 0 ? 'an empty object' : 'an object with wrong or missing members';
}
