import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * A Service of Kubernetes by its rules: each new connection goes to one of the endpoints, whatever that does with it; connections that are open stay.
 * The nodes learn `lagMs` later that a pod is ready, or that it is being stopped, which it learns at once.
 */
export class KubernetesService {
  readonly url: string;
  readonly #lagMs: number;
  readonly #server: ReturnType<typeof createServer>;
  readonly #endpoints = new Set<number>();
  readonly #sockets = new Set<Socket>();

  static async start(lagMs: number): Promise<KubernetesService> {
    const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new KubernetesService(server, lagMs);
  }

  private constructor(server: ReturnType<typeof createServer>, lagMs: number) {
    this.#server = server;
    this.#lagMs = lagMs;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on('connection', (client) => this.#forward(client));
  }

  /** A pod whose readiness probe has passed. */
  async add(port: number): Promise<void> {
    await delay(this.#lagMs);
    this.#endpoints.add(port);
  }

  /** A pod that is being stopped. */
  async remove(port: number): Promise<void> {
    await delay(this.#lagMs);
    this.#endpoints.delete(port);
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((closed) => this.#server.close(closed));
  }

  #forward(client: Socket): void {
    const endpoints = [...this.#endpoints];
    const port = endpoints[Math.floor(Math.random() * endpoints.length)];
    if (port === undefined) return void client.resetAndDestroy();
    const server = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(from);
      from.pipe(to);
      from.on('error', () => to.resetAndDestroy());
      from.on('close', () => this.#sockets.delete(from));
    }
  }
}
