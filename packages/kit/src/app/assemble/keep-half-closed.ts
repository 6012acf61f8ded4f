import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Node's documentation of `clientError` names `_httpMessage`: the response that is being written. */
type ServedSocket = Socket & { readonly _httpMessage?: ServerResponse | null };

/** After the client ended its side. The system refuses what follows a reset, so the second one finds out; the third is for long ways. */
const PROBES_MS = [0, 50, 1000];

/**
 * A client may end its side of a connection and still wait for the response; Node would end the other side, and the response is lost. A client
 * that is gone looks the same until something is sent to it: an interim response, `102 Processing`, which clients pass over. HTTP/1.0 has none, so
 * there the client is taken for gone, and so is one that follows events.
 */
export function keepHalfClosed(server: Server): void {
  (server as { httpAllowHalfOpen?: boolean }).httpAllowHalfOpen = true;
  // One function for all connections, and no `once`: it happens once anyway, and thousands of streams keep what it makes.
  server.on('connection', (socket: Socket) => socket.on('end', onHalfClosed));
}

function onHalfClosed(this: ServedSocket): void {
  const response = this._httpMessage;
  // Node ends a connection without a request.
  if (response === undefined || response === null) return;
  if (response.req.httpVersion === '1.0' || isEventStream(response)) return void this.end();
  for (const delayMs of PROBES_MS) {
    const timer = setTimeout(() => probe(this, response), delayMs);
    response.once('close', () => clearTimeout(timer));
  }
}

/** Once the headers are sent, what follows finds out. */
function probe(socket: Socket, response: ServerResponse): void {
  if (!response.headersSent && !socket.destroyed) response.writeProcessing();
  else if (isEventStream(response)) socket.end();
}

function isEventStream(response: ServerResponse): boolean {
  return response.headersSent && String(response.getHeader('content-type')).startsWith('text/event-stream');
}
