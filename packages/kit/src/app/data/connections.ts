import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Server as ListeningServer, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';

/** How often a stopping server looks for connections without a request. */
const LOOK_MS = 50;

/** Turns of the event loop that `stopListening` waits at most for one in which nobody connects. */
const TURNS_MAX = 100;

/** Where a connection's newest response is kept on its socket. */
const newest: unique symbol = Symbol('kit.response');
/** Node's documentation of `clientError` names `_httpMessage`: the response that is being written. */
type ServedSocket = Socket & { [newest]?: ServerResponse; readonly _httpMessage?: ServerResponse | null };

/**
 * The connections of the app's own server while it stops. A proxy keeps connections to the app and uses one at any time. Whatever it sends on
 * a connection that closes at this moment is lost, and it may not send a POST again. So a connection is closed by its own response, which
 * says so, and one without a request only when it had time to get one.
 */
export class Connections {
  readonly #server: Server;
  readonly #closeIdleOfNode: () => void;
  readonly #open = new Set<ServedSocket>();
  #isLeaving = false;
  #emptied = () => {};

  constructor(server: Server) {
    this.#server = server;
    this.#closeIdleOfNode = server.closeIdleConnections.bind(server);
    // `close` calls it, too.
    server.closeIdleConnections = () => this.#closeIdle();
    server.on('connection', (socket: Socket) => {
      this.#open.add(socket);
      // It closes once: what `once` would keep of each connection is 136 bytes.
      socket.on('close', () => {
        this.#open.delete(socket);
        if (this.#open.size === 0) this.#emptied();
      });
    });
    server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
      (socket as ServedSocket)[newest] = response;
      if (this.#isLeaving) response.shouldKeepAlive = false;
    });
  }

  /** Every response ends its connection from now on: with `Connection: close`, or, where the headers are sent already, after its last byte. */
  endWithResponse(): void {
    this.#isLeaving = true;
    for (const socket of this.#open) {
      const response = socket[newest];
      if (response === undefined || response.writableFinished) continue;
      if (response.headersSent) response.once('finish', () => socket.destroySoon());
      else response.shouldKeepAlive = false;
    }
  }

  /**
   * Closes the port and leaves the connections alone; `close` of Node's HTTP server would close the idle ones too. The kernel resets what it
   * has accepted and the app has not, so the port closes right after a turn of the event loop that accepted nothing.
   */
  async stopListening(): Promise<void> {
    let hasAccepted = true;
    const accepted = (): void => void (hasAccepted = true);
    this.#server.on('connection', accepted);
    await nextTurn();
    for (let turn = 0; hasAccepted && turn < TURNS_MAX; turn += 1) {
      hasAccepted = false;
      await nextTurn();
    }
    this.#server.off('connection', accepted);
    ListeningServer.prototype.close.call(this.#server);
  }

  /** Resolves when no connection is open, or after `graceMs`. */
  async empty(graceMs: number): Promise<void> {
    if (this.#open.size === 0) return;
    const waited = Promise.withResolvers<void>();
    this.#emptied = waited.resolve;
    const timer = setTimeout(waited.resolve, graceMs);
    await waited.promise;
    clearTimeout(timer);
  }

  /** Closes connections without a request, now and until the returned function is called. Otherwise each holds the server up to the deadline. */
  closeIdle(): () => void {
    // After the loop has read what had arrived.
    const close = (): void => void setImmediate(() => this.#closeIdle());
    close();
    const timer = setInterval(close, LOOK_MS);
    return () => clearInterval(timer);
  }

  /** Node takes a response for sent when its last byte is queued, and would cut off one that its client reads slowly. */
  #closeIdle(): void {
    const queued = [...this.#open].flatMap(({ _httpMessage: response }) =>
      response?.finished && !response.writableFinished ? [response] : [],
    );
    for (const response of queued) response.finished = false;
    this.#closeIdleOfNode();
    for (const response of queued) response.finished = true;
    // Node takes a connection for busy until its first request is over, also one that never sent a byte.
    for (const socket of this.#open) if (socket.bytesRead === 0) socket.destroy();
  }
}
