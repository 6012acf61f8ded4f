import type { Exchange } from '../http/exchange.ts';
import type { CrudRequest } from './crud-request.ts';

/** A request of a route. Its services are made when somebody first asks for them. */
export function httpCrudRequest(exchange: Exchange, tenant: string | null, action: string): CrudRequest {
  const { tx, host } = exchange;
  const { databases } = host;
  return {
    context: exchange,
    user: exchange.user,
    principal: exchange.principal,
    tenant,
    action,
    clock: exchange.clock,
    get services() {
      return exchange.services;
    },
    requestId: exchange.requestId,
    databases: tx === undefined ? databases : { ...databases, [tx.using]: tx },
    isAdmin: false,
    visibilities: new Map(),
    scopes: new Map(),
  };
}
