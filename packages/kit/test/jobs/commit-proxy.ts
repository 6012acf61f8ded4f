import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** The query message of COMMIT. */
const COMMIT = 'commit\0';

/** In front of a PostgreSQL server, to lose a connection at the worst moment. */
export interface CommitProxy {
  readonly url: string;
  /** The next COMMIT, or message with these words, gets no answer: it never reaches the server, or has been carried out. */
  cutNext(when: 'before' | 'after', words?: string): void;
  readonly cuts: number;
  close(): Promise<void>;
}

export async function startCommitProxy(target: string): Promise<CommitProxy> {
  const address = new URL(target);
  const sockets = new Set<Socket>();
  let armed: { readonly when: 'before' | 'after'; readonly words: string } | undefined;
  let cuts = 0;
  const server = createServer((client) => {
    const upstream = connect(Number(address.port), address.hostname);
    let isCut = false;
    const end = (): void => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', end);
      socket.on('close', () => {
        sockets.delete(socket);
        end();
      });
    }
    client.on('data', (bytes: Buffer) => {
      if (armed !== undefined && bytes.includes(armed.words)) {
        const { when } = armed;
        armed = undefined;
        cuts += 1;
        isCut = true;
        if (when === 'before') return end();
      }
      upstream.write(bytes);
      return undefined;
    });
    upstream.on('data', (bytes: Buffer) => {
      // The server has answered, so it has committed.
      if (isCut) end();
      else client.write(bytes);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(target);
  url.hostname = '127.0.0.1';
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    cutNext: (when, words = COMMIT) => void (armed = { when, words }),
    get cuts() {
      return cuts;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
