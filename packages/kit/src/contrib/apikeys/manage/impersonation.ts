import { actingRequest } from '../../../http/exchange/acting-request.ts';
import { apiKeyErrors } from '../errors.ts';
import type { ChangeContext } from './record-change.ts';

/** A key outlives the impersonation, so none is handed out during one. Holds for every path that returns a secret. */
export function refuseImpersonated({ by }: ChangeContext): void {
  const named = typeof by === 'object' && by !== null && 'user' in by ? by : null;
  const principals = [named, actingRequest()?.principal ?? null];
  if (principals.some((principal) => principal?.impersonatedBy !== undefined)) throw apiKeyErrors.impersonated_session();
}
