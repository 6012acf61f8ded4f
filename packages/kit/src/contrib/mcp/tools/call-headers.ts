import type { Exchange } from '../../../http/exchange/exchange.ts';

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** Headers that describe the request of the protocol, or that a call sets by arguments. */
const OF_THE_REQUEST = new Set([
  'accept',
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'cookie',
  'expect',
  'idempotency-key',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-unmodified-since',
  'last-event-id',
  'range',
  'transfer-encoding',
]);

const kept = new WeakMap<Exchange, Headers>();

/** The headers of the request that a call shares with it: the credential, the host, whatever tenants are told apart by. */
export function callHeaders(parent: Exchange): Headers {
  const known = kept.get(parent);
  if (known !== undefined) return known;
  const shared = Object.entries(parent.headers).filter(([name]) => !OF_THE_REQUEST.has(name) && !name.startsWith('mcp-'));
  const headers: Headers = { ...Object.fromEntries(shared), accept: 'application/json', 'x-request-id': parent.requestId };
  kept.set(parent, headers);
  return headers;
}
