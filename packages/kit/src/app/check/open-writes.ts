import { admitsAnyone } from '../../http/compile/route-faults.ts';
import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';
import type { Fault } from '../../options/fault.ts';

/** W027: writes that need no credential. `openWrite` in the metadata of a route says why it is open: a login, a link that carries its own secret. */
export function openWrites(routes: readonly CompiledRoute[]): Fault[] {
  return routes
    .filter(({ method, hidden, metadata }) => method !== 'GET' && method !== 'QUERY' && !hidden && !('openWrite' in metadata))
    .filter(({ permission }) => admitsAnyone(permission))
    .map(({ controller, field, method, path }) => ({
      id: 'W027',
      message: `${controller}.${field}: anyone on the network may ${method} ${path}, without a credential.`,
      hint: "Set a permission, or say why it is open: metadata: { openWrite: 'a contact form' }.",
    }));
}
