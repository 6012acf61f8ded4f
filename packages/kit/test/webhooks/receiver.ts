import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** How a receiver answers a request: a status, or by itself. */
export type Answer = number | ((request: Received, response: ServerResponse) => void);

/** A webhook receiver on loopback that remembers what arrived and answers as told, per path. */
export interface Receiver {
  readonly origin: string;
  readonly received: Received[];
  /** Requests to one path, in order of arrival. */
  of(path: string): Received[];
  answer(path: string, answer: Answer): void;
  url(path?: string): string;
  close(): Promise<void>;
}

export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = [];
  const answers = new Map<string, Answer>();
  const sockets = new Set<Socket>();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => undefined);
    request.on('end', () => {
      const arrived = { path: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks).toString() };
      received.push(arrived);
      const answer = answers.get(arrived.path) ?? 200;
      if (typeof answer === 'number') response.writeHead(answer).end();
      else answer(arrived, response);
    });
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    origin,
    received,
    of: (path) => received.filter((each) => each.path === path),
    answer: (path, answer) => void answers.set(path, answer),
    url: (path = '/') => origin + path,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
