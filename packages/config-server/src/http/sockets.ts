import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { AuditRecorder } from '../audit/recorder.ts';
import { nodeHttp } from '../node-http.ts';
import type { TlsMaterial } from '../tls/tls-material.ts';
import { sendResponse, type HttpResponse } from './response.ts';
import { HOST_AND_PORT } from './host.ts';
import type { RequestListener } from './listener.ts';
import { BAD_REQUEST, HEADERS_TOO_LARGE, NOT_FOUND, REQUEST_TIMEOUT, URI_TOO_LONG } from './problem.ts';

/** How long slow or silent peers may hold a connection. */
export interface Deadlines {
  readonly headersMs: number;
  readonly handshakeMs: number;
  readonly keepAliveMs: number;
  /** For requests in flight, once the server was asked to stop. */
  readonly shutdownMs: number;
}

export const DEADLINES: Deadlines = { headersMs: 15_000, handshakeMs: 10_000, keepAliveMs: 65_000, shutdownMs: 10_000 };

const HEADER_BYTES_MAX = 16 * 1024;
const LINGER_MS = 500;

/** A server socket with every limit set. Not listening yet. */
export function createSocket(listener: RequestListener, tls: TlsMaterial | undefined, audit: AuditRecorder, deadlines: Deadlines): Server {
  const options: ServerOptions = {
    maxHeaderSize: HEADER_BYTES_MAX,
    // Checked by isWellFormed(): a refusal by node itself would have no audit line.
    requireHostHeader: false,
    headersTimeout: deadlines.headersMs,
    // Bodies are never read, so a request gets little more time than its headers.
    requestTimeout: deadlines.headersMs * 2,
    keepAliveTimeout: deadlines.keepAliveMs,
    // Deadlines are enforced when connections are checked; node's default of 30 s would double the shorter ones.
    connectionsCheckingInterval: Math.min(1000, deadlines.headersMs),
    // Detects peers that are gone without closing; a stream would otherwise stay open forever.
    keepAlive: true,
    keepAliveInitialDelay: 60_000,
  };
  /** The last request with a body of each connection. */
  const sending = new WeakMap<Duplex, IncomingMessage>();
  const respond: RequestListener = (request, response) => {
    if (hasBody(request)) sending.set(request.socket, request);
    // Node's parser drops bytes that follow an upgrade request in the same packet. A request among them would wait for its response forever.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false;
    if (isWellFormed(request)) listener(request, response);
    else {
      audit.record({ endpoint: 'none', outcome: 'malformed' });
      audit.afterFlush(() => sendResponse(response, BAD_REQUEST, request.method === 'HEAD', false));
    }
  };
  const server = tls
    ? createHttpsServer({ ...options, ...tls.options, handshakeTimeout: deadlines.handshakeMs }, respond)
    : nodeHttp.createServer(options, respond);
  // A peer may close its side after its request and still wait for the response. By default node closes the other side then, also when the
  // response is not written yet. A TLS connection is half open from its handshake on: before, a peer that left would be waited for.
  (server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true;
  server.on('secureConnection', (socket: Socket) => (socket.allowHalfOpen = true));
  const open = new Set<Socket>();
  const closeIdle = server.closeIdleConnections.bind(server);
  server.closeIdleConnections = () => closeIdleConnections(closeIdle, open);
  const follow = (socket: Socket): void => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  };
  server.on('connection', follow);
  server.on('secureConnection', follow);
  // Without these listeners node would answer such requests itself, without an audit line.
  server.on('checkContinue', respond);
  server.on('checkExpectation', respond);
  // CONNECT asks for a tunnel, which no route offers.
  server.on('connect', (_request, socket) => {
    // Node no longer handles errors of this socket: without this listener a reset would be an uncaught error.
    socket.on('error', () => undefined);
    audit.record({ endpoint: 'none', outcome: 'not-found' });
    audit.afterFlush(() => respondAndClose(socket, NOT_FOUND));
  });
  const refused = new WeakSet<Duplex>();
  // Before the listener of https.Server, which turns a failed handshake into a clientError.
  server.prependListener('tlsClientError', (_error: Error, socket: Duplex) => {
    if (refused.has(socket)) return;
    refused.add(socket);
    audit.record({ endpoint: 'tls', outcome: 'unauthenticated' });
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (refused.has(socket)) socket.destroy();
    // A body that is late or malformed belongs to a request that has its line and its response: a second one would be taken for that of the
    // next request. What was written is still sent.
    else if (sending.get(socket)?.complete === false) audit.afterFlush(() => (socket as Socket).destroySoon());
    else refuse(error, socket, audit);
  });
  return server;
}

/**
 * Replaces node's function, which `close` calls, too. Node counts a response as sent when its last byte is queued, and cuts off one that its
 * peer reads slowly; and it leaves connections open that never sent a byte.
 */
function closeIdleConnections(closeIdle: () => void, open: ReadonlySet<ResponseSocket>): void {
  const queued = [...open].flatMap(({ _httpMessage: response }) => (response?.finished && !response.writableFinished ? [response] : []));
  for (const response of queued) response.finished = false;
  closeIdle();
  for (const response of queued) response.finished = true;
  for (const socket of open) if (socket.bytesRead === 0) socket.destroy();
}

/** Node's documentation of `clientError` names this property: the response that is being written. */
type ResponseSocket = Socket & { readonly _httpMessage?: ServerResponse | null };

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
}

const HOST = new RegExp(`^(?:${HOST_AND_PORT})?$`, 'i');

/** At most one Host header, and a valid one: a gateway in front may use the other of two. Node's parser takes HTTP/2.0 for HTTP/1.1. */
function isWellFormed({ httpVersion, rawHeaders }: IncomingMessage): boolean {
  let host: string | undefined;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!;
    if (name.length !== 4 || name.toLowerCase() !== 'host') continue;
    if (host !== undefined) return false;
    host = rawHeaders[index + 1]!;
  }
  return (httpVersion === '1.1' || httpVersion === '1.0') && (host === undefined || HOST.test(host));
}

interface ParseError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer;
}

/** Responds to bytes that node's parser could not read as a request. */
function refuse(error: ParseError, socket: Duplex, audit: AuditRecorder): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const response = responseTo(error);
  audit.record({ endpoint: 'none', outcome: 'malformed' });
  audit.afterFlush(() => {
    // In the middle of another response, such as a stream, it would be read as a part of that.
    if (isResponding(socket)) socket.destroy();
    else respondAndClose(socket, response);
  });
}

function isResponding(socket: Duplex): boolean {
  return (socket as ResponseSocket)._httpMessage?.headersSent === true;
}

/** Responds and closes, whatever the peer does: none of node's deadlines covers this socket any more. */
function respondAndClose(socket: Duplex, response: HttpResponse): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  socket.end(rawResponse(response), 'latin1');
  // Closing with unread bytes resets the connection and may discard the response, so incoming bytes are read and dropped for a moment.
  socket.resume();
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}

function responseTo(error: ParseError): HttpResponse {
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return REQUEST_TIMEOUT;
  if (error.code !== 'HPE_HEADER_OVERFLOW') return BAD_REQUEST;
  // The parser counts the request line as header; when the packet is still in it, the URL is what is too long.
  const start = error.rawPacket?.subarray(0, HEADER_BYTES_MAX).toString('latin1') ?? '';
  return /^[A-Z]+ [^\r\n]*$/.test(start) ? URI_TOO_LONG : HEADERS_TOO_LARGE;
}

function rawResponse(response: HttpResponse): string {
  const body = response.body.toString('latin1');
  const lines = [`HTTP/1.1 ${response.status} ${JSON.parse(body).title as string}`];
  for (let index = 0; index < response.headers.length; index += 2) lines.push(`${response.headers[index]}: ${response.headers[index + 1]}`);
  // As node ends the headers of every other response.
  lines.push(`Date: ${new Date().toUTCString()}`, 'Connection: close');
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}
