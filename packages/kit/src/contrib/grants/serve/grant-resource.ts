import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import { resource } from '../../../crud/checks/declare-resource.ts';
import type { CrudCaller } from '../../../crud/declare/crud-caller.ts';
import { type AskedRows, STAFF, type WriteContext } from '../../../crud/declare/resource.ts';
import type { Db } from '../../../db/engine/db.ts';
import type { Where } from '../../../db/sql/where/where.ts';
import type { User } from '../../../auth/people/principal.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import { FaultCollector } from '../../../errors/fault-collector.ts';
import { isKitError } from '../../../errors/kit-error.ts';
import { askerFor, askerOf, type StaffCaller } from '../caller/staff-asker.ts';
import { findSubject } from '../caller/find-subject.ts';
import { grantsState } from '../declare/grants-state.ts';
import type { ObjectActions } from '../declare/object-actions.ts';
import { userSubject } from '../declare/subject.ts';
import { checkTerms, type GivenGrant } from '../grant/grant.ts';
import { lockToShare, type SharedObject, sharedBy, shareObject, unshareObject } from '../grant/share.ts';
import { grantModel } from '../models.ts';
import { findGrants } from '../rows/store.ts';

/** What the form of a new grant sends. */
export interface GrantFields {
  /** One of the three. */
  readonly user?: string | null;
  readonly group?: string | null;
  readonly everyone?: string | null;
  readonly type?: string;
  readonly object?: string;
  readonly set?: string | null;
  readonly actions?: readonly string[] | null;
  readonly expires_at?: string | null;
}

/** Grants as staff see them. The functions of this module write them: they lock the object, and ask what the caller holds on it. */
export const grantResource = resource(grantModel, {
  changes: 'trigger',
  name: 'grant',
  audiences: { [STAFF]: { rows: grantsSeenBy } },
  writes: 'verbs',
  async validate({ input, caller, db }) {
    await db.transaction(async (tx) => void (await checkedGrant(tx, caller, input as GrantFields)), CONFLICT_RETRIES);
    return [];
  },
  hooks: {
    async create({ input, tx, caller, ...context }) {
      const { object, subject, terms } = await checkedGrant(tx, caller, input as GrantFields);
      const [row] = await shareObject(tx, object, [{ subject, ...terms }], by(context), () => ['body']);
      return row as never;
    },
    async destroy({ before, tx, caller, ...context }) {
      const declaration = objectType(tx, before.object_type);
      const asker = await askerFor(tx, caller, declaration, before.object_id);
      await unshareObject(tx, await lockToShare(tx, declaration, before.object_id, asker), before.id, by(context));
    },
  },
});

/**
 * Superusers see all grants. Others see those that they gave or got, and all of an object that they may share: a list of all would name objects that they may
 * not see. The object is that of the filters, or of the grants that are asked for.
 */
async function grantsSeenBy(caller: CrudCaller<User>, { db, filters, keys }: AskedRows): Promise<boolean | Where> {
  const { user, action } = caller;
  // Who makes a grant has just been asked whether it may share the object.
  if (user.is_superuser || action === 'create') return true;
  const { type, object } = filters;
  const asked = type === undefined || object === undefined ? [] : [{ object_type: type, object_id: object }];
  const named = keys === null ? asked : await findGrants(db, keys as readonly string[]);
  const objects = new Map(named.map((each) => [JSON.stringify([each.object_type, each.object_id]), each]));
  const shared: Where[] = [];
  for (const { object_type, object_id } of objects.values())
    if (await mayShare(db, caller, object_type, object_id)) shared.push({ object_type, object_id } as Where);
  // Of its object a list has nothing else: an index finds them.
  if (keys === null && shared.length > 0) return shared[0] as Where;
  return { or: [{ granted_by: user.id }, { subject: userSubject(user.id) }, ...shared] } as Where;
}

async function mayShare(db: Db, caller: StaffCaller, type: string, id: string): Promise<boolean> {
  const declaration = grantsState.of(db).objects.get(type);
  return declaration !== undefined && (await sharedBy(db, declaration, id, await askerOf(db, caller))) !== undefined;
}

interface CheckedGrant {
  readonly object: SharedObject;
  readonly subject: string;
  readonly terms: Omit<GivenGrant, 'subject'>;
}

/** What a form asks for, and the object, locked. Every fault of the fields that are given at once. */
async function checkedGrant(tx: Db, caller: StaffCaller, fields: GrantFields): Promise<CheckedGrant> {
  const { type, object: id, set, actions, expires_at: until } = fields;
  const faults = new FaultCollector();
  const declaration = type === undefined ? undefined : faults.check(() => objectType(tx, type));
  const object =
    declaration === undefined || id === undefined ? undefined : await faults.check(() => objectToShare(tx, caller, declaration, id));
  // An object that is not found has no tenant: what is shared is in the caller's own.
  const subject = await faults.check(() => requireSubject(tx, fields, object?.link.tenantKey ?? caller.tenant ?? ''));
  const terms = {
    ...(typeof set === 'string' && set !== '' ? { set } : {}),
    ...(Array.isArray(actions) && actions.length > 0 ? { actions: actions as string[] } : {}),
    expiresAt: typeof until === 'string' ? new Date(until) : null,
  };
  faults.check(() => checkTerms(tx, declaration, terms, ['body']));
  faults.throwIfAny();
  return { object: object as SharedObject, subject: subject as string, terms };
}

/** Not to be seen by the caller is not to exist. */
async function objectToShare(tx: Db, caller: StaffCaller, declaration: ObjectActions, id: string): Promise<SharedObject> {
  try {
    return await lockToShare(tx, declaration, id, await askerFor(tx, caller, declaration, id));
  } catch (error) {
    if (!isKitError(error, 'object_not_found') && !isKitError(error, 'not_found')) throw error;
    throw fieldFault('object', 'unknown_object', 'There is no such object.');
  }
}

function objectType(db: Db, type: string): ObjectActions {
  const { objects } = grantsState.of(db);
  const found = objects.get(type);
  if (found === undefined)
    throw fieldFault('type', 'unknown_type', `There are no actions for "${type}". Known: ${[...objects.keys()].join(', ')}.`);
  return found;
}

const SUBJECT_FIELDS = ['user', 'group', 'everyone'] as const;

/** One of the fields says who; a fault stands at the field that has it. */
async function requireSubject(tx: Db, fields: GrantFields, tenantKey: string): Promise<string> {
  const [given, ...more] = SUBJECT_FIELDS.filter((name) => typeof fields[name] === 'string' && fields[name] !== '');
  if (given === undefined) throw fieldFault('user', 'required', 'Choose a user, a group or everyone.');
  const [second] = more;
  if (second !== undefined) throw fieldFault(second, 'invalid', 'Choose one: a user, a group or everyone.');
  const text = String(fields[given]);
  const found = await findSubject(tx, given === 'everyone' ? text : `${given}:${text}`, tenantKey);
  if ('fault' in found) throw fieldFault(given, 'unknown_subject', found.fault);
  return found.subject;
}

function fieldFault(name: string, code: string, message: string): Error {
  return coreErrors.validation_error({ errors: [{ location: ['body', name], code, message }] });
}

function by({ principal, requestId }: Pick<WriteContext, 'principal' | 'requestId'>) {
  return { by: principal, requestId };
}
