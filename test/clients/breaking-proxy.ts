import { createServer, request as send, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Passes requests on. It can end the responses that are on their way as if they were complete, or break their connections. */
export class BreakingProxy {
  readonly url: string;
  readonly #server: Server;
  readonly #open: Set<ServerResponse>;

  static async start(target: number): Promise<BreakingProxy> {
    const open = new Set<ServerResponse>();
    const server = createServer((incoming, outgoing) => {
      open.add(outgoing);
      outgoing.on('close', () => open.delete(outgoing));
      const { host: _, ...headers } = incoming.headers;
      const options = { host: '127.0.0.1', port: target, method: incoming.method, path: incoming.url, headers };
      const passed = send(options, (response) => {
        outgoing.writeHead(response.statusCode ?? 502, response.headers);
        response.on('data', (chunk) => outgoing.write(chunk));
        // A server that died has sent a complete response, as some proxies see it.
        response.on('error', () => undefined).on('close', () => outgoing.end());
      });
      passed.on('error', () => (outgoing.headersSent ? outgoing.end() : outgoing.writeHead(502).end()));
      outgoing.on('close', () => passed.destroy());
      incoming.pipe(passed);
    });
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    return new BreakingProxy(server, open);
  }

  private constructor(server: Server, open: Set<ServerResponse>) {
    this.#server = server;
    this.#open = open;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  get responses(): number {
    return this.#open.size;
  }

  endAll(): void {
    for (const response of this.#open) response.end();
  }

  resetAll(): void {
    for (const response of this.#open) response.socket?.resetAndDestroy();
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((closed) => this.#server.close(closed));
  }
}
