import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** How often connections are looked at while the server stops: a response that ends leaves its connection open for the next request. */
const LOOK_MS = 50;

/** Closes the connections of a stopping server on which nothing is under way. Otherwise each keep-alive connection holds it up to the deadline. */
export class IdleConnections {
  readonly #server: Server;
  readonly #open = new Set<Socket>();

  constructor(server: Server) {
    this.#server = server;
    server.on('connection', (socket: Socket) => {
      this.#open.add(socket);
      socket.once('close', () => this.#open.delete(socket));
    });
  }

  /** Until the returned function is called. */
  closeFromNowOn(): () => void {
    this.#close();
    const timer = setInterval(() => this.#close(), LOOK_MS);
    return () => clearInterval(timer);
  }

  #close(): void {
    this.#server.closeIdleConnections();
    // Node takes a connection for busy until its first request is over, also one that never sent a byte.
    for (const socket of this.#open) if (socket.bytesRead === 0) socket.destroy();
  }
}
