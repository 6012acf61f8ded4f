import type { Db } from '../../../db/engine/db.ts';
import { HINDRANCES } from '../endpoints/owner-standing.ts';
import { findEndpoint } from '../endpoints/store.ts';
import { webhookErrors } from '../errors.ts';
import { webhooksOf } from '../webhooks.ts';

/** What is queued for an endpoint whose owner may not receive it would fail at the worker, delivery by delivery. */
export async function requireOwner(db: Db, endpointId: string): Promise<void> {
  const endpoint = await findEndpoint(db, endpointId);
  if (endpoint === null) throw webhookErrors.endpoint_not_found();
  for (const found of await webhooksOf(db).findHindrances(db, [endpoint])) {
    if (found.status === 'rejected') throw found.reason;
    if (found.value !== null) throw webhookErrors.endpoint_owner_not_allowed({ detail: HINDRANCES[found.value] });
  }
}
