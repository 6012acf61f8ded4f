import { ruleResult } from '../../../auth/rights/rule-result.ts';
import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import { sameId } from '../../../auth/people/same-id.ts';
import type { Db } from '../../../db/engine/db.ts';
import { storedIdentity } from '../../../db/sql/identity-value.ts';
import { statementsOf } from '../../../db/sql/model-statements.ts';
import { quoteName } from '../../../db/declare/names.ts';
import { uuidv7 } from '../../../db/values/uuidv7.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import type { FieldError, KitError } from '../../../errors/kit-error.ts';
import { refuseUnknownNames, requireArguments } from '../../../options/read-options.ts';
import { grantErrors } from '../errors.ts';
import { declarationOf, grantsState, type ObjectRef } from '../declare/grants-state.ts';
import type { ObjectActions } from '../declare/object-actions.ts';
import { type ChainLink, encodedKey, objectChain } from '../declare/object-chain.ts';
import { actorText, type ChangedGrant, type GrantChange, recordGrants } from '../rows/record-grant.ts';
import { deleteGrant, grantsOn, type GrantRow, upsertGrant } from '../rows/store.ts';
import { storedActions } from '../declare/stored-actions.ts';
import { type ParsedSubject, parseSubject, subjectText } from '../declare/subject.ts';
import { anObject, queryable } from '../../../options/value-rule.ts';

/** The actions of a grant and its subject. */
export interface GivenGrant<A extends string = string, S extends string = string> {
  /** `user:<id>`, `group:<id>`, or `tenant`, `authenticated`, `public` where the model's declaration allows them. */
  readonly subject: string;
  /** A set of the declaration. */
  readonly set?: S;
  /** One action; `actions` for several. */
  readonly action?: A;
  /** Several actions; `action` for one. */
  readonly actions?: readonly A[];
  /** Default: the grant does not expire. */
  readonly expiresAt?: Date | null;
}

export interface NewGrant<A extends string = string, S extends string = string> extends GivenGrant<NoInfer<A>, NoInfer<S>>, GrantChange {
  /** The object that is shared. */
  readonly object: ObjectRef<A, S>;
}

export interface Revocation extends GrantChange {
  /** Who loses the grant: `user:<id>`, `group:<id>`, `tenant`, `authenticated` or `public`. */
  readonly subject: string;
  /** The object that is no longer shared with the subject. */
  readonly object: ObjectRef;
}

export interface ReplacedGrants<A extends string = string, S extends string = string> extends GrantChange {
  /** The object that is shared. */
  readonly object: ObjectRef<A, S>;
  /** All grants of the object from now on; others are revoked. */
  readonly grants: readonly GivenGrant<NoInfer<A>, NoInfer<S>>[];
}

export interface Transfer extends GrantChange {
  /** The object that gets another owner. */
  readonly object: ObjectRef;
  /** The id of the owner until now. */
  readonly from: string;
  /** The id of the new owner. */
  readonly to: string;
}

const CHANGE = { by: true, requestId: true } as const satisfies Record<keyof GrantChange, true>;
const GIVEN = { subject: true, set: true, action: true, actions: true, expiresAt: true } as const satisfies Record<keyof GivenGrant, true>;
const names = (known: object): ReadonlySet<string> => new Set(Object.keys(known));
const NEW_GRANT = names({ ...GIVEN, ...CHANGE, object: true } satisfies Record<keyof NewGrant, true>);
const GIVEN_GRANT = names(GIVEN);
const REVOCATION = names({ ...CHANGE, subject: true, object: true } satisfies Record<keyof Revocation, true>);
const REPLACED = names({ ...CHANGE, object: true, grants: true } satisfies Record<keyof ReplacedGrants, true>);
const TRANSFER = names({ ...CHANGE, object: true, from: true, to: true } satisfies Record<keyof Transfer, true>);

/** A grant that was checked, ready to be written. */
export interface CheckedGrant {
  readonly subject: string;
  readonly stored: string;
  readonly expiresAt: Date | null;
}

/**
 * Grants a set, an action or some actions on an object, in the caller's transaction. A subject has one grant per object: granting again
 * replaces it. Trusted like any function of the program: who may share what is checked by the sharing routes.
 *
 * @example
 * ```ts
 * await grant(tx, { subject: `user:${user.id}`, set: 'editor', object: { type: orders, id: order.id } });
 * ```
 */
export async function grant<A extends string = string, S extends string = string>(db: Db, input: NewGrant<A, S>): Promise<GrantRow> {
  refuseUnknownNames('grant()', input, NEW_GRANT);
  requireArguments('grant()', { db, input }, { db: queryable, input: anObject });
  const { object, by, requestId, ...given } = input;
  return db.transaction(async (tx) => {
    const locked = await lockObject(tx, declarationOf(tx, object.type), object.id);
    const [checked] = await checkGrants(tx, locked, [given]);
    const [change] = await putGrants(tx, locked, [checked as CheckedGrant], by);
    await recordGrants(tx, [change as ChangedGrant], { by, requestId });
    return (change as ChangedGrant).after as GrantRow;
  }, CONFLICT_RETRIES);
}

/** Removes the grant of a subject on an object. False when there was none. */
export async function revoke(db: Db, input: Revocation): Promise<boolean> {
  refuseUnknownNames('revoke()', input, REVOCATION);
  requireArguments('revoke()', { db, input }, { db: queryable, input: anObject });
  const { object, by, requestId } = input;
  return db.transaction(async (tx) => {
    const link = await lockObject(tx, declarationOf(tx, object.type), object.id);
    const [row] = await grantsOn(tx, [{ type: link.declaration.type, id: link.id }], [normalizedSubject(input.subject)]);
    if (row === undefined) return false;
    await deleteGrant(tx, row.id);
    await recordGrants(tx, [{ before: row, after: null }], { by, requestId });
    return true;
  }, CONFLICT_RETRIES);
}

/** Makes these the grants of an object, and removes all others. */
export async function replaceGrants<A extends string = string, S extends string = string>(
  db: Db,
  input: ReplacedGrants<A, S>,
): Promise<readonly GrantRow[]> {
  refuseUnknownNames('replaceGrants()', input, REPLACED);
  requireArguments('replaceGrants()', { db, input }, { db: queryable, input: anObject });
  for (const each of input.grants) refuseUnknownNames('replaceGrants()', each, GIVEN_GRANT);
  const { object, by, requestId } = input;
  return db.transaction(async (tx) => {
    const link = await lockObject(tx, declarationOf(tx, object.type), object.id);
    const checked = await checkGrants(tx, link, input.grants);
    const kept = new Set(checked.map(({ subject }) => subject));
    const removed = (await grantsOn(tx, [{ type: link.declaration.type, id: link.id }])).filter(({ subject }) => !kept.has(subject));
    for (const row of removed) await deleteGrant(tx, row.id);
    const changes = await putGrants(tx, link, checked, by);
    await recordGrants(tx, [...removed.map((before) => ({ before, after: null })), ...changes], { by, requestId });
    return changes.map(({ after }) => after as GrantRow);
  }, CONFLICT_RETRIES);
}

/** Hands what one subject has to another: its grant, and the ownership where the object is its own. False when it has neither. */
export async function transfer(db: Db, input: Transfer): Promise<boolean> {
  refuseUnknownNames('transfer()', input, TRANSFER);
  requireArguments('transfer()', { db, input }, { db: queryable, input: anObject });
  const { object, by, requestId } = input;
  return db.transaction(async (tx) => {
    const declaration = declarationOf(tx, object.type);
    const link = await lockObject(tx, declaration, object.id);
    const [from, to] = [normalizedSubject(input.from), normalizedSubject(input.to)];
    const owner = parseSubject(from);
    const isOwner = owner?.kind === 'user' && link.owner !== null && sameId(link.owner, owner.id);
    const rows = await grantsOn(tx, [{ type: declaration.type, id: link.id }], [from, to]);
    const [given, had] = [rows.find(({ subject }) => subject === from), rows.find(({ subject }) => subject === to)];
    if (!isOwner && given === undefined) return false;
    if (from === to) return true;
    const newOwner = parseSubject(to);
    const errors = await subjectErrors(tx, link, newOwner, ['to']);
    if (isOwner && newOwner?.kind !== 'user' && errors.length === 0)
      errors.push({ location: ['to'], code: 'unknown_subject', message: 'Only a user can own an object.' });
    if (errors.length > 0) throw coreErrors.validation_error({ errors });
    if (isOwner) await setOwner(tx, declaration, link.id, (newOwner as { readonly id: string }).id);
    if (given === undefined) return true;
    const both = had === undefined ? given.actions : merged(declaration, given.actions, had.actions);
    const expiresAt = had === undefined ? given.expires_at : later(given.expires_at, had.expires_at);
    await deleteGrant(tx, given.id);
    const changes = await putGrants(tx, link, [{ subject: to, stored: both, expiresAt }], by);
    await recordGrants(tx, [{ before: given, after: null }, ...changes], { by, requestId });
    return true;
  }, CONFLICT_RETRIES);
}

function merged(declaration: ObjectActions, one: string, other: string): string {
  if (one === other) return one;
  return storedActions({ actions: [...declaration.expand(one), ...declaration.expand(other)] });
}

function later(one: Date | null, other: Date | null): Date | null {
  return one === null || other === null ? null : one > other ? one : other;
}

async function setOwner(tx: Db, declaration: ObjectActions, id: string, userId: string): Promise<void> {
  const statements = statementsOf(declaration.model);
  const column = statements.column(declaration.owner as string);
  const value = column.encode(storedIdentity(column, userId));
  const parameters: unknown[] = [encodedKey(declaration, id), value];
  const touched = statements.columns.flatMap(({ name, settings, encode }) => {
    if (settings.increment === true) return [`, ${quoteName(name)} = ${quoteName(name)} + 1`];
    return settings.touch === undefined ? [] : [`, ${quoteName(name)} = $${parameters.push(encode(settings.touch(tx.clock)))}`];
  });
  await tx.query(
    `update ${statements.table} set ${quoteName(column.name)} = $2${touched.join('')} where ${quoteName(declaration.key.name)} = $1`,
    parameters,
  );
}

/**
 * The object as it is until the transaction ends. Everything that changes grants of an object takes its row first: what a user holds is read
 * after that, so that a grant and a revocation at once have an order. 404 when there is no such object.
 */
export async function lockObject(tx: Db, declaration: ObjectActions, id: unknown): Promise<ChainLink> {
  const key = encodedKey(declaration, id);
  if (key !== undefined && tx.dialect === 'postgres') {
    const { table } = statementsOf(declaration.model);
    await tx.query(`select 1 as locked from ${table} where ${quoteName(declaration.key.name)} = $1 for no key update`, [key]);
  }
  const [link] = await objectChain(tx, declaration, id, 0);
  if (link === undefined) throw grantErrors.object_not_found();
  return link;
}

export function normalizedSubject(text: string): string {
  const parsed = parseSubject(text);
  if (parsed === undefined)
    throw coreErrors.validation_error({ errors: [{ location: ['subject'], code: 'unknown_subject', message: UNKNOWN_SUBJECT }] });
  return subjectText(parsed);
}

const UNKNOWN_SUBJECT = 'Unknown subject. Use user:<id>, group:<id> or, where the type allows it, tenant, authenticated or public.';

/** Checks names, subjects and expiry of grants: 422 with every fault at once. */
export async function checkGrants(
  tx: Db,
  link: ChainLink,
  grants: readonly GivenGrant[],
  locationOf: (index: number) => readonly (string | number)[] = () => [],
): Promise<CheckedGrant[]> {
  const { declaration } = link;
  const errors: FieldError[] = [];
  const checked: CheckedGrant[] = [];
  const now = grantsState.of(tx).clock.now();
  const seen = new Set<string>();
  for (const [index, given] of grants.entries()) {
    const at = locationOf(index);
    const parsed = parseSubject(given.subject);
    errors.push(...(await subjectErrors(tx, link, parsed, [...at, 'subject'])));
    const subject = parsed === undefined ? '' : subjectText(parsed);
    if (seen.has(subject)) errors.push({ location: [...at, 'subject'], code: 'duplicate', message: 'The subject is given twice.' });
    seen.add(subject);
    checked.push({ subject, ...readTerms(declaration, given, at, now, errors) });
  }
  if (errors.length > 0) throw invalidGrants(errors);
  return checked;
}

/**
 * Throws one 422 with every fault of what is granted and until when, whoever it is granted to. Without a declaration only the expiry can be
 * checked.
 */
export function checkTerms(
  tx: Db,
  declaration: ObjectActions | undefined,
  given: Omit<GivenGrant, 'subject'>,
  at: readonly (string | number)[],
): void {
  const now = grantsState.of(tx).clock.now();
  const errors: FieldError[] = [];
  if (declaration === undefined) readExpiry(given, at, now, errors);
  else readTerms(declaration, given, at, now, errors);
  if (errors.length > 0) throw invalidGrants(errors);
}

/** Programs print the message: it has the faults, too. */
function invalidGrants(errors: readonly FieldError[]): KitError {
  return coreErrors.validation_error({ errors, message: errors.map(({ message }) => message).join(' ') });
}

function readTerms(
  declaration: ObjectActions,
  given: Omit<GivenGrant, 'subject'>,
  at: readonly (string | number)[],
  now: Date,
  errors: FieldError[],
): Omit<CheckedGrant, 'subject'> {
  const expiresAt = readExpiry(given, at, now, errors);
  return { stored: readActions(declaration, given, at, errors), expiresAt };
}

function readExpiry(
  { expiresAt = null }: Omit<GivenGrant, 'subject'>,
  at: readonly (string | number)[],
  now: Date,
  errors: FieldError[],
): Date | null {
  if (expiresAt !== null && !(expiresAt > now))
    errors.push({ location: [...at, 'expires_at'], code: 'expired', message: 'The expiry must be in the future.' });
  return expiresAt;
}

function readActions(
  declaration: ObjectActions,
  given: Omit<GivenGrant, 'subject'>,
  at: readonly (string | number)[],
  errors: FieldError[],
): string {
  const { set, action, actions = action === undefined ? undefined : [action] } = given;
  const refuse = (member: string, code: string, message: string) => {
    errors.push({ location: [...at, member], code, message });
    return '';
  };
  if ((set === undefined) === (actions === undefined)) return refuse('set', 'required', 'Give a set, or actions.');
  if (set !== undefined)
    return declaration.sets.has(set)
      ? storedActions({ set })
      : refuse('set', 'unknown_set', `There is no set "${set}". Known: ${[...declaration.sets.keys()].join(', ')}.`);
  const list = actions as readonly string[];
  const unknown = list.filter((each) => !declaration.actions.has(each));
  if (list.length === 0) return refuse('actions', 'required', 'Give at least one action; to take everything away, revoke the grant.');
  return unknown.length === 0
    ? storedActions({ actions: list })
    : refuse('actions', 'unknown_action', `There is no action "${unknown.join('", "')}". Known: ${[...declaration.actions].join(', ')}.`);
}

/** A subject of another tenant is like one that does not exist. */
async function subjectErrors(
  tx: Db,
  link: ChainLink,
  parsed: ParsedSubject | undefined,
  location: readonly (string | number)[],
): Promise<FieldError[]> {
  const fault: FieldError[] = [{ location, code: 'unknown_subject', message: UNKNOWN_SUBJECT }];
  if (parsed === undefined) return fault;
  const { users, groups, isInTenant } = grantsState.of(tx);
  const { tenantKey, declaration } = link;
  if (parsed.kind === 'user') {
    if (users === null) return [];
    const user = ruleResult('user', 'users.findById', await users.findById(tx, parsed.id));
    if (user === null) return fault;
    if (tenantKey === '' || isInTenant === undefined) return [];
    return ruleResult('isInTenant', 'objectGrants()', await isInTenant(tx, user, tenantKey)) ? [] : fault;
  }
  if (parsed.kind === 'group') {
    const group = groups === null ? null : await groups.findById(tx, parsed.id);
    return group === null || (group.tenantKey !== null && tenantKey !== '' && group.tenantKey !== tenantKey) ? fault : [];
  }
  return declaration.subjects.has(parsed.kind) ? [] : fault;
}

/** Writes grants of one object. Those that are as they were are neither written nor recorded: `before` and `after` are one row. */
export async function putGrants(tx: Db, link: ChainLink, grants: readonly CheckedGrant[], by: GrantChange['by']): Promise<ChangedGrant[]> {
  const { clock } = grantsState.of(tx);
  const now = clock.now();
  const before = await grantsOn(
    tx,
    [{ type: link.declaration.type, id: link.id }],
    grants.map(({ subject }) => subject),
  );
  const changes: ChangedGrant[] = [];
  for (const { subject, stored, expiresAt } of grants) {
    const had = before.find((row) => row.subject === subject) ?? null;
    if (had !== null && isSame(had, link, stored, expiresAt)) {
      changes.push({ before: had, after: had });
      continue;
    }
    const after = await upsertGrant(tx, {
      id: uuidv7(clock),
      subject,
      object_type: link.declaration.type,
      object_id: link.id,
      tenant_key: link.tenantKey,
      actions: stored,
      granted_by: actorText(by),
      created_at: now,
      expires_at: expiresAt,
      object_deleted_at: link.isDeleted ? now : null,
    });
    changes.push({ before: had, after });
  }
  return changes;
}

function isSame(row: GrantRow, { tenantKey, isDeleted }: ChainLink, stored: string, expiresAt: Date | null): boolean {
  return (
    row.actions === stored &&
    (row.expires_at?.getTime() ?? null) === (expiresAt?.getTime() ?? null) &&
    row.tenant_key === tenantKey &&
    (row.object_deleted_at !== null) === isDeleted
  );
}
