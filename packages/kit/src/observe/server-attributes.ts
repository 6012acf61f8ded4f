import type { SpanAttributes } from './tracing.ts';

/** Which server a client's call goes to. Never its path: that may hold a secret or a name. */
export function serverAttributes(url: string): SpanAttributes {
  const { hostname, port, protocol } = new URL(url);
  return { 'server.address': hostname, 'server.port': port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port) };
}
