import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/**
 * An address on loopback that leads to a port, and can lead to another: as a DNS name, a Kubernetes service or the address of a managed database
 * does. Connections that are open stay where they lead.
 */
export class TcpProxy {
  readonly port: number;
  readonly #server: ReturnType<typeof createServer>;
  readonly #pairs = new Set<Pair>();
  readonly #sockets = new Set<Socket>();
  /** To the server, of connections that were silenced and then closed by their client: the server was not told. */
  readonly #abandoned = new Set<Socket>();
  #target: number | 'nowhere';
  /** Each chunk is forwarded so much later. */
  delayMs = 0;
  /** Called with each chunk that arrives from either side, before it is forwarded: the place to cut a connection in the middle of something. */
  onChunk: (() => void) | undefined;

  static async start(target: number): Promise<TcpProxy> {
    const server = createServer({ noDelay: true, allowHalfOpen: true }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new TcpProxy(server, target);
  }

  private constructor(server: ReturnType<typeof createServer>, target: number) {
    this.#server = server;
    this.#target = target;
    this.port = (server.address() as AddressInfo).port;
    server.on('connection', (client) => this.#join(client));
  }

  /** The same address as `url`, through here. */
  through(url: string): string {
    const address = new URL(url);
    address.port = String(this.port);
    return address.href;
  }

  /** Where new connections lead. `nowhere`: they are taken, and nothing ever comes back. */
  lead(target: number | 'nowhere'): void {
    this.#target = target;
  }

  /** From now on nothing passes over the connections that are open, and neither side is told: a host that lost its network. */
  silence(): void {
    for (const pair of this.#pairs) pair.isSilent = true;
  }

  reset(): void {
    for (const { client, server } of this.#pairs) {
      client.resetAndDestroy();
      server?.destroy();
    }
  }

  /** Connections over which nothing passes, and which their client has not closed. */
  get silentConnections(): number {
    return [...this.#pairs].filter(({ isSilent }) => isSilent).length;
  }

  /** Connections that lead to this port. */
  connectionsTo(target: number): number {
    return [...this.#pairs].filter((pair) => pair.target === target).length;
  }

  /** Connections that only the server has. */
  get abandonedConnections(): number {
    return this.#abandoned.size;
  }

  /** What a server does once its keep-alive has noticed. */
  endAbandoned(): void {
    for (const socket of this.#abandoned) socket.destroy();
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((closed) => this.#server.close(closed));
  }

  #join(client: Socket): void {
    const target = this.#target;
    const server = target === 'nowhere' ? undefined : connect({ port: target, host: '127.0.0.1', noDelay: true, allowHalfOpen: true });
    const pair: Pair = { client, server, target, isSilent: target === 'nowhere' };
    this.#pairs.add(pair);
    const forward = (from: Socket, to: Socket | undefined): void => {
      const pass = (work: () => void): void => {
        const unlessSilent = () => void (pair.isSilent || work());
        if (this.delayMs === 0) unlessSilent();
        else setTimeout(unlessSilent, this.delayMs);
      };
      from.on('data', (chunk) => {
        if (!pair.isSilent) this.onChunk?.();
        pass(() => to?.write(chunk));
      });
      from.on('error', () => undefined);
      from.on('end', () => {
        if (from === client) this.#pairs.delete(pair);
        pass(() => to?.end());
      });
      from.on('close', () => {
        this.#sockets.delete(from);
        this.#abandoned.delete(from);
        if (from === client && pair.isSilent && server !== undefined && !server.destroyed) this.#abandoned.add(server);
        this.#pairs.delete(pair);
        pass(() => to?.destroy());
      });
      this.#sockets.add(from);
    };
    forward(client, server);
    if (server !== undefined) forward(server, client);
  }
}

interface Pair {
  readonly client: Socket;
  readonly server: Socket | undefined;
  readonly target: number | 'nowhere';
  isSilent: boolean;
}
