import type { App } from '../../app/declare/module.ts';
import { isKitError } from '../../errors/kit-error.ts';
import { type AnyResource, STAFF } from '../declare/resource.ts';
import { AdminAccess } from './admin-access.ts';
import type { CallerInTransaction } from '../serve/crud-of.ts';

/** What a staff member may know of some records: which of them, and which of their fields. */
export interface RecordSight {
  readonly ids: ReadonlySet<string>;
  readonly shows: (field: string) => boolean;
}

const NOTHING: RecordSight = { ids: new Set(), shows: () => false };

/**
 * What a staff member may know of records of a resource that another page speaks about, such as the audit log. Superusers, and staff who see every row, know
 * every record, deleted ones included, but not the columns that the rules of the resource hide from them. `audience` null: what the caller may know without
 * being staff.
 */
export async function recordSight(
  app: App,
  resource: AnyResource,
  caller: CallerInTransaction,
  ids: readonly string[],
  audience: string | null = STAFF,
): Promise<RecordSight> {
  try {
    return await sightOf(app, resource, caller, ids, audience);
  } catch (error) {
    if (isKitError(error) && (error.status === 401 || error.status === 403)) return NOTHING;
    throw error;
  }
}

async function sightOf(
  app: App,
  resource: AnyResource,
  caller: CallerInTransaction,
  ids: readonly string[],
  audience: string | null,
): Promise<RecordSight> {
  const access = new AdminAccess(app, resource, caller, { audience });
  const columns = await access.columns();
  const shows = (field: string) => !Object.hasOwn(resource.model.columns as object, field) || columns.has(field);
  const seesEvery = audience === STAFF && caller.user?.is_superuser === true;
  if (seesEvery || ids.length === 0 || (await access.seesEveryRow())) return { ids: new Set(ids), shows };
  return { ids: await access.knownKeys(ids), shows };
}
