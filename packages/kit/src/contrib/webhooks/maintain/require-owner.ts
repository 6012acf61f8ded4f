import type { Db } from '../../../db/engine/db.ts';
import { HINDRANCES } from '../endpoints/owner-standing.ts';
import { findEndpoint } from '../endpoints/store.ts';
import { webhookErrors } from '../errors.ts';
import { webhooksOf } from '../webhooks.ts';

/** What is queued for an endpoint whose owner may not receive it would fail at the worker, delivery by delivery. */
export async function requireOwner(db: Db, endpointId: string): Promise<void> {
  const endpoint = await findEndpoint(db, endpointId);
  if (endpoint === null) throw webhookErrors.endpoint_not_found();
  const [hindrance] = await webhooksOf(db).findHindrances(db, [endpoint]);
  if (hindrance !== null && hindrance !== undefined) throw webhookErrors.endpoint_owner_not_allowed({ detail: HINDRANCES[hindrance] });
}
