import { connect, type Socket } from 'node:net';
import { once } from 'node:events';

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** The server ended the connection. */
  readonly closed: boolean;
}

/** One connection to a server on loopback, spoken by hand: what no HTTP client would send. */
export class RawConnection implements AsyncDisposable {
  readonly socket: Socket;
  #received = '';
  #closed = false;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => (this.#received += text));
    socket.on('close', () => (this.#closed = true));
    socket.on('error', () => undefined);
  }

  static async open(address: string): Promise<RawConnection> {
    const { hostname, port } = new URL(address);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    return new RawConnection(socket);
  }

  send(...parts: readonly (string | Buffer)[]): void {
    for (const part of parts) if (this.socket.writable) this.socket.write(part);
  }

  /** Waits for a whole answer, at most `deadlineMs`; it decides nothing but how long a broken server holds up the test. */
  async answer(deadlineMs = 10_000): Promise<RawAnswer> {
    const until = performance.now() + deadlineMs;
    for (;;) {
      const end = this.#received.indexOf('\r\n\r\n');
      if (end >= 0) {
        const [statusLine = '', ...lines] = this.#received.slice(0, end).split('\r\n');
        const headers = Object.fromEntries(
          lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
        );
        const rest = this.#received.slice(end + 4);
        if (rest.length >= Number(headers['content-length'] ?? 0)) {
          const body = Buffer.from(rest.slice(0, Number(headers['content-length'] ?? rest.length)), 'latin1').toString();
          return { status: Number(statusLine.split(' ')[1]), headers, body, closed: this.#closed };
        }
      }
      if (this.#closed || performance.now() > until) return { status: 0, headers: {}, body: this.#received, closed: this.#closed };
      await new Promise((done) => setTimeout(done, 5));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return;
    this.socket.destroy();
    await once(this.socket, 'close');
  }
}
