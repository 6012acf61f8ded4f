import { constraintViolation } from '../../../db/engine/constraint-violation.ts';
import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import { openErasure } from '../../../db/subjects/erasure-state.ts';
import { uuidv7 } from '../../../db/values/uuidv7.ts';
import { randomBytes } from 'node:crypto';
import { FaultCollector } from '../../../errors/fault-collector.ts';
import { refuseUnknownNames, requireArguments } from '../../../options/read-options.ts';
import { anObject, queryable } from '../../../options/value-rule.ts';
import { slugFault, slugOf } from '../declare/slug.ts';
import { tenantsIn } from '../declare/tenants.ts';
import { tenantErrors } from '../errors.ts';
import { NAME_LENGTH_MAX } from '../models.ts';
import { countTenantsWithRole, insertTenant, type TenantRow, updateTenantRow } from '../rows/store.ts';
import { lockedFor, requireManager, requireOwner } from './actor.ts';
import { lockUser } from './lock-user.ts';
import { insertNewMember } from './members.ts';
import { changeContextNames, type ChangeContext, recordTenant } from './record-change.ts';

export interface NewTenant extends ChangeContext {
  /** What people see. */
  readonly name: string;
  /** Names the tenant in requests. Default: made of the name. */
  readonly slug?: string | undefined;
  /** The id of the user who becomes its owner. */
  readonly owner: string;
}

const NEW_TENANT: ReadonlySet<string> = new Set(
  Object.keys({ ...changeContextNames, name: true, slug: true, owner: true } satisfies Record<keyof NewTenant, true>),
);
const SLUG_TRIES = 5;

/**
 * Creates a tenant with its owner.
 *
 * @example
 * ```ts
 * const { id } = await createTenant(db, { name: 'North Studio', owner: user.id });
 * ```
 */
export async function createTenant(db: Db, given: NewTenant): Promise<TenantRow> {
  requireArguments('createTenant()', { db, given }, { db: queryable, given: anObject });
  refuseUnknownNames('createTenant()', given, NEW_TENANT);
  const { clock, settings } = tenantsIn(db);
  const name = typeof given.name === 'string' ? given.name.trim() : '';
  checkFields({ name, slug: given.slug });
  return db.transaction(async (tx) => {
    const owner = await lockUser(tx, given.owner);
    await requireOneMore(tx, owner);
    const now = clock.now();
    const row = {
      id: uuidv7(clock),
      name,
      state: 'active',
      created_at: now,
      updated_at: now,
      deletes_at: null,
      suspended_at: null,
      suspended_reason: null,
    } as const;
    const after = await insertWithSlug(tx, row, given.slug);
    await recordTenant(tx, 'created', { before: null, after }, given);
    await insertNewMember(tx, after, { user: owner, roles: [settings.roles.owner], addedBy: null }, given);
    return after;
  }, CONFLICT_RETRIES);
}

/** One more tenant of the user, or 409 `tenant_limit_reached`. The user is locked: of several at once, each counts the ones before. */
async function requireOneMore(tx: Db, owner: string): Promise<void> {
  const { ownedMax: limit, roles } = tenantsIn(tx).settings;
  if ((await countTenantsWithRole(tx, owner, roles.owner)) >= limit) throw tenantErrors.tenant_limit_reached({ extensions: { limit } });
}

/** A slug that was made of the name gets an ending where it is taken. */
async function insertWithSlug(tx: Db, row: Omit<TenantRow, 'slug'>, slug: string | undefined): Promise<TenantRow> {
  const made = slugOf(row.name);
  const base = made === '' || slugFault(made) !== null ? `tenant${made === '' ? '' : `-${made}`}` : made;
  for (let tries = 0; tries < SLUG_TRIES; tries += 1) {
    const wanted = slug ?? (tries === 0 && made !== '' ? base : `${base}-${randomBytes(2).toString('hex')}`);
    try {
      return await tx.transaction((savepoint) => insertTenant(savepoint, { ...row, slug: wanted }), CONFLICT_RETRIES);
    } catch (error) {
      if (constraintViolation(error)?.kind !== 'unique') throw error;
      if (slug !== undefined) break;
    }
  }
  throw tenantErrors.slug_taken();
}

export interface TenantFields extends ChangeContext {
  readonly name?: string | undefined;
  readonly slug?: string | undefined;
}

/** Managers change the name, owners the slug: requests that name the tenant by the old one fail. */
export async function updateTenant(
  db: Db,
  id: string,
  { name, slug, ...context }: TenantFields & { readonly asStaff?: boolean },
): Promise<TenantRow> {
  const { clock } = tenantsIn(db);
  const given = { ...(name === undefined ? {} : { name: name.trim() }), ...(slug === undefined ? {} : { slug }) };
  checkFields(given);
  return db.transaction(async (tx) => {
    const { tenant: before, actor } = await lockedFor(tx, id, context.by, { asStaff: context.asStaff === true });
    requireManager(tx, actor);
    const isSame = (given.name ?? before.name) === before.name && (given.slug ?? before.slug) === before.slug;
    if (isSame) return before;
    if (given.slug !== undefined && given.slug !== before.slug) requireOwner(tx, actor);
    const after = await updateTenantRow(tx, before.id, { ...given, updated_at: clock.now() }).catch((error: unknown) => {
      throw constraintViolation(error)?.kind === 'unique' ? tenantErrors.slug_taken() : error;
    });
    await recordTenant(tx, 'updated', { before, after }, context);
    return after;
  }, CONFLICT_RETRIES);
}

/** Nobody acts in the tenant from the next request on. It is deleted permanently when its grace is over. */
export async function deleteTenant(db: Db, id: string, context: ChangeContext & { readonly asStaff?: boolean } = {}): Promise<TenantRow> {
  const { clock, settings } = tenantsIn(db);
  return db.transaction(async (tx) => {
    const { tenant: before, actor } = await lockedFor(tx, id, context.by, { asStaff: context.asStaff === true, whileSuspended: true });
    requireOwner(tx, actor);
    const now = clock.now();
    const deletes_at = new Date(now.getTime() + settings.graceMs);
    const after = await updateTenantRow(tx, before.id, { state: 'deleting', updated_at: now, deletes_at });
    await recordTenant(tx, 'deletion_started', { before, after }, context);
    return after;
  }, CONFLICT_RETRIES);
}

/** Ends the deletion, within its grace. */
export async function restoreTenant(db: Db, id: string, context: ChangeContext & { readonly asStaff?: boolean } = {}): Promise<TenantRow> {
  const { clock } = tenantsIn(db);
  return db.transaction(async (tx) => {
    const { tenant: before, actor } = await lockedFor(tx, id, context.by, { asStaff: context.asStaff === true, whileDeleting: true });
    requireOwner(tx, actor);
    if (before.state === 'active') return before;
    if (actor.userId !== null) await requireOneMore(tx, await lockUser(tx, actor.userId));
    // What is gone does not come back.
    if ((await openErasure(tx, { kind: 'tenant', id: before.id })) !== undefined) throw tenantErrors.tenant_not_found();
    const after = await updateTenantRow(tx, before.id, { state: 'active', updated_at: clock.now(), deletes_at: null });
    await recordTenant(tx, 'restored', { before, after }, context);
    return after;
  }, CONFLICT_RETRIES);
}

function checkFields({ name, slug }: { readonly name?: string; readonly slug?: string | undefined }): void {
  const faults = new FaultCollector();
  const add = (field: string, message: string | null): void =>
    message === null
      ? undefined
      : faults.refuse(tenantErrors.invalid_tenant({ detail: message, errors: [{ location: ['body', field], code: 'invalid', message }] }));
  if (name !== undefined)
    add('name', name.length >= 1 && name.length <= NAME_LENGTH_MAX ? null : `A name has 1 to ${NAME_LENGTH_MAX} characters.`);
  if (slug !== undefined) add('slug', slugFault(slug));
  faults.throwIfAny();
}
