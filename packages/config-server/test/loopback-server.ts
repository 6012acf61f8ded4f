import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createRawServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export interface Loopback {
  readonly url: string;
  readonly port: number;
  /** Every request's method, path and headers, in order of arrival. */
  readonly requests: IncomingMessage[];
  handle: RequestListener;
  close(): Promise<void>;
}

/** A real HTTP server for one test, closed when the test ends. `port` brings a closed one back to the same address. */
export async function serveHttp(handle: RequestListener, port = 0): Promise<Loopback> {
  const requests: IncomingMessage[] = [];
  const loopback = { requests, handle } as { -readonly [Key in keyof Loopback]: Loopback[Key] };
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    requests.push(request);
    loopback.handle(request, response);
  });
  loopback.close = closer(server, () => server.closeAllConnections());
  await listen(server, port);
  loopback.port = (server.address() as AddressInfo).port;
  loopback.url = `http://127.0.0.1:${loopback.port}`;
  onTestFinished(loopback.close);
  return loopback;
}

/** A server that answers whatever `speak` writes to the socket: for answers no HTTP library would produce. */
export async function serveRaw(speak: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createRawServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
    socket.once('data', () => speak(socket));
  });
  await listen(server, 0);
  onTestFinished(closer(server, () => sockets.forEach((socket) => socket.destroy())));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
}

function closer(server: Server, cut: () => void): () => Promise<void> {
  return () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      cut();
    });
}

/** Answers with a document the way the configuration server does. */
export function sendDocument(response: ServerResponse, document: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(200, { 'content-type': 'application/json; charset=utf-8', ...headers });
  response.end(JSON.stringify(document));
}
