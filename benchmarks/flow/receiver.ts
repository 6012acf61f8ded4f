// Where the events of all contenders arrive. It keeps what the black-box test asks about: which event came where, how often, and signed by what.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Received {
  readonly path: string;
  /** The same for every attempt to deliver the same event. */
  readonly id: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly at: number;
}

export interface Receiver {
  readonly url: string;
  /** All that was accepted so far, in the order of arrival. */
  readonly received: readonly Received[];
  /** The next requests to `path` are answered with 503. */
  refuse(path: string, times: number): void;
  /** Resolves when `isEnough`, asked after each arrival, is true; false when nothing has arrived for `patienceMs`. */
  until(isEnough: () => boolean, patienceMs: number): Promise<boolean>;
  forget(): void;
  stop(): Promise<void>;
}

export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = [];
  const refused = new Map<string, number>();
  let arrived: () => void = () => undefined;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const path = request.url ?? '';
      const left = refused.get(path) ?? 0;
      refused.set(path, left - 1);
      if (left > 0) {
        response.writeHead(503).end();
        return;
      }
      const headers = request.headers as Record<string, string>;
      received.push({ path, id: headers['webhook-id'] ?? '', headers, body: Buffer.concat(chunks).toString(), at: performance.now() });
      response.writeHead(204).end();
      arrived();
    });
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    refuse: (path, times) => void refused.set(path, times),
    async until(isEnough, patienceMs) {
      while (!isEnough()) {
        const before = received.length;
        await new Promise<void>((done) => {
          const timer = setTimeout(done, patienceMs);
          arrived = () => (clearTimeout(timer), done());
        });
        if (received.length === before) return isEnough();
      }
      return true;
    },
    forget: () => void (received.length = 0),
    async stop() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}
