import type { AdminContext } from '../app/admin/declaration.ts';
import type { App } from '../app/declare/module.ts';
import { AdminAccess, resourceOfModel, type StaffPlace } from '../crud/staff/admin-access.ts';
import type { AnyResource } from '../crud/declare/resource.ts';
import type { Model } from '../db/declare/model.ts';
import { isKitError } from '../errors/kit-error.ts';

/** The resource as this member of staff reaches it. */
export async function accessOf(resource: AnyResource, context: AdminContext, place?: StaffPlace): Promise<AdminAccess> {
  const { app, principal, requestId, databases } = context;
  const caller = { user: principal.user, principal, tenant: await context.tenant(), requestId, databases };
  return new AdminAccess(app as App, resource, caller, place);
}

/** As {@link accessOf}, for a model that another one refers to. Null: no resource declares it, and staff see all of it. */
export async function accessToModel(model: Model, context: AdminContext): Promise<AdminAccess | null> {
  const resource = resourceOfModel(context.app as App, model);
  return resource === undefined ? null : accessOf(resource, context);
}

/** What only adds to a page is left out where this member of staff may not see it: the page itself stays. */
export async function unlessRefused<T>(work: () => Promise<T>, otherwise: T): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isKitError(error) && (error.status === 401 || error.status === 403)) return otherwise;
    throw error;
  }
}
