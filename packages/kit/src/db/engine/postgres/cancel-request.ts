import type { ConnectionOptions } from 'node:tls';
import pg from 'pg';

/** How long the server has to take the request; nothing waits for it but a socket. */
const WAIT_MS_MAX = 2_000;

/** What the driver's connections have, beyond the types of the package. */
interface CancellingConnection extends Pick<pg.Connection, 'stream' | 'on'> {
  connect(port: number | string, host?: string): void;
  requestSsl(): void;
  cancel(processId: number, secretKey: number): void;
}

interface CancelledClient {
  readonly host: string;
  readonly port: number;
  readonly ssl: boolean | ConnectionOptions;
  readonly processID: number | null;
  readonly secretKey: number | null;
}

/**
 * Asks the server to end what a connection runs, over a connection of its own, as the protocol has it. It may come too late, and then it must
 * not meet the next statement: close the cancelled connection. Resolves when the server took it, or could not.
 */
export async function sendCancelRequest(client: pg.ClientBase): Promise<void> {
  const { host, port, ssl, processID, secretKey } = client as unknown as CancelledClient;
  if (processID === null || secretKey === null) return;
  const sender = new pg.Client({ host, port, ssl });
  const connection = sender.connection as unknown as CancellingConnection;
  await new Promise<void>((done) => {
    const timer = setTimeout(() => connection.stream.destroy(), WAIT_MS_MAX);
    const end = (): void => {
      clearTimeout(timer);
      connection.stream.destroy();
      done();
    };
    const cancel = (): void => connection.cancel(processID, secretKey);
    connection.on('error', end);
    connection.on('end', end);
    connection.on('connect', () => (ssl ? connection.requestSsl() : cancel()));
    connection.on('sslconnect', cancel);
    if (host.startsWith('/')) connection.connect(`${host}/.s.PGSQL.${port}`);
    else connection.connect(port, host);
  });
}
