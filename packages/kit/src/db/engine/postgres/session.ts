import type { Socket } from 'node:net';
import pg from 'pg';
import { ServerSilent, WrongServer } from './connection-failure.ts';
import type { ServerAddress, WantedSession } from './server-address.ts';

export interface SessionSettings {
  /** How long one host may take to open a session. */
  readonly connectMsMax: number;
  /** How long an open session may take to say which server it is on; behind a pooler it waits for its turn. */
  readonly identifyMsMax: number;
  /** After so long without traffic the system asks whether the other side is there, each second, 10 times. 0: never. */
  readonly keepAliveMs: number;
  /** `statement_timeout` of the session. Undefined: as the server or the role has it. */
  readonly statementMsMax?: number | undefined;
  readonly pipeline: boolean;
}

/** Which server process a session is on, as it was when the session began. */
export interface ServerIdentity {
  /** To the microsecond: two servers do not share it, and a server has another after a restart. */
  readonly started: string;
  readonly isStandby: boolean;
  readonly isReadOnly: boolean;
  /** A pooler is between: statements may run under any process of the server. */
  readonly isPooled: boolean;
}

const IDENTITY = `select pg_postmaster_start_time()::text as started, pg_is_in_recovery() as standby,
  current_setting('transaction_read_only') as read_only, pg_backend_pid() as pid`;

/** A connection that is closed politely has so long to leave; then it is closed without the server. */
const GOODBYE_MS = 1000;

/** What the driver's client has beyond the types of the package. */
interface DriverClient {
  readonly readyForQuery: boolean;
  readonly processID: number | null;
  readonly _activeQuery: { readonly text?: string } | null;
}

/** One open connection, and what is known of the server behind it. */
export class Session {
  readonly client: pg.Client;
  /** Undefined until the server has said it, and where it cannot. */
  identity: ServerIdentity | undefined;
  /** It was asked which server it is on, and the answer has not come. */
  isIdentifying = false;
  /** The connection is gone. */
  isLost = false;
  readonly #gone: Promise<void>;

  constructor(client: pg.Client) {
    this.client = client;
    this.#gone = new Promise((done) => client.once('end', () => done()));
    client.on('error', () => (this.isLost = true));
    client.once('end', () => (this.isLost = true));
  }

  /** A statement was sent and its answer is not complete. */
  get isWaiting(): boolean {
    return !this.#driver.readyForQuery;
  }

  /** The server's process, or a number of the pooler. */
  get processId(): number | null {
    return this.#driver.processID;
  }

  /** The text of the statement that the answer is waited for. */
  get statement(): string | undefined {
    return this.#driver._activeQuery?.text;
  }

  get #driver(): DriverClient {
    return this.client as unknown as DriverClient;
  }

  get bytesRead(): number {
    return (this.client.connection.stream as Socket).bytesRead;
  }

  async identify(): Promise<ServerIdentity> {
    this.isIdentifying = true;
    const { rows } = await this.client
      .query<{ started: string; standby: boolean; read_only: string; pid: number }>(IDENTITY)
      .finally(() => (this.isIdentifying = false));
    const [row] = rows;
    if (row === undefined) throw new Error('The server did not say which one it is.');
    const isPooled = row.pid !== this.processId;
    return (this.identity = { started: row.started, isStandby: row.standby, isReadOnly: row.read_only !== 'off', isPooled });
  }

  /** The answer. A server that does not give it in time loses the connection; what has arrived is read first, because this process may have been busy. */
  async within<T>(msMax: number, answer: Promise<T>): Promise<T> {
    let isOver = false;
    const end = (): void => void (isOver || this.destroy(new ServerSilent(`the server did not answer within ${msMax} ms`)));
    const timer = setTimeout(() => setImmediate(end), msMax);
    try {
      return await answer;
    } finally {
      isOver = true;
      clearTimeout(timer);
    }
  }

  /** Without the server's help. What waits for an answer fails with this error. */
  destroy(error?: Error): void {
    this.client.connection.stream.destroy(error);
  }

  /** Tells the server, and resolves when the connection is gone: a server that does not answer is not waited for. */
  async close(): Promise<void> {
    if (this.isLost) this.destroy();
    else {
      const timer = setTimeout(() => this.destroy(), GOODBYE_MS);
      timer.unref();
      this.client.end().catch(() => undefined);
      void this.#gone.then(() => clearTimeout(timer));
    }
    await this.#gone;
  }
}

/** The server is starting, or is a replica that does not take connections: another host may. */
const CANNOT_CONNECT_NOW = '57P03';

/** Opens sessions at an address: on the first of its hosts that answers and is what the address asks for. */
export class SessionOpener {
  readonly #address: ServerAddress;
  readonly #settings: SessionSettings;
  /** Hosts that failed when they were tried last: the others come first. */
  readonly #failed = new Set<string>();

  constructor(address: ServerAddress, settings: SessionSettings) {
    this.#address = address;
    this.#settings = settings;
  }

  get keepAliveMs(): number {
    return this.#settings.keepAliveMs;
  }

  async open(): Promise<Session> {
    const { wanted } = this.#address;
    if (wanted !== 'prefer-standby') return this.#first(wanted);
    try {
      return await this.#first('standby');
    } catch {
      return this.#first('any');
    }
  }

  async #first(wanted: WantedSession): Promise<Session> {
    let failure: unknown;
    for (const host of this.#hosts()) {
      try {
        const session = await this.#openOn(host, wanted);
        this.#failed.delete(host);
        return session;
      } catch (error) {
        failure = error;
        this.#failed.add(host);
        if (!mayBeAnswerOfOneHost(error)) throw error;
      }
    }
    throw failure;
  }

  #hosts(): string[] {
    const { hosts, isBalanced } = this.#address;
    const order = isBalanced ? shuffled(hosts) : [...hosts];
    return [...order.filter((host) => !this.#failed.has(host)), ...order.filter((host) => this.#failed.has(host))];
  }

  async #openOn(host: string, wanted: WantedSession): Promise<Session> {
    const { connectMsMax, identifyMsMax, keepAliveMs, statementMsMax, pipeline } = this.#settings;
    const client = new pg.Client({
      connectionString: host,
      connectionTimeoutMillis: connectMsMax,
      keepAlive: keepAliveMs > 0,
      keepAliveInitialDelayMillis: keepAliveMs,
      ...(statementMsMax === undefined ? {} : { statement_timeout: statementMsMax }),
      pipeline,
    });
    const session = new Session(client);
    try {
      await client.connect();
      if (wanted !== 'any') refuseOther(wanted, await session.within(connectMsMax, session.identify()));
      // Goes out with the first statement. Without a pipeline that would have to wait for it in the driver's queue.
      else if (pipeline) session.identify().catch(() => undefined);
      else await session.within(identifyMsMax, session.identify()).catch(ignoreUnlessLost(session));
      return session;
    } catch (error) {
      if (error instanceof WrongServer) void session.close();
      else client.connection.stream.destroy();
      throw statementMsMax === undefined ? error : explained(error);
    }
  }
}

/** PgBouncer takes few settings from clients. */
function explained(error: unknown): unknown {
  if (error instanceof Error && error.message.includes('unsupported startup parameter: statement_timeout'))
    error.message += `. A pooler does not accept statementMsMax: remove it, and set the limit on the role (alter role app set statement_timeout = '15min').`;
  return error;
}

/** Servers that speak the protocol and do not know the functions are used like any other. */
function ignoreUnlessLost(session: Session): (error: unknown) => void {
  return (error) => {
    if (session.isLost) throw error;
  };
}

function refuseOther(wanted: WantedSession, { isStandby, isReadOnly }: ServerIdentity): void {
  const isRight = {
    any: true,
    'read-write': !isReadOnly,
    'read-only': isReadOnly,
    primary: !isStandby,
    standby: isStandby,
    'prefer-standby': true,
  }[wanted];
  if (!isRight) throw new WrongServer(`no host of the database URL is ${wanted}: target_session_attrs=${wanted}`);
}

/** As libpq does: after a wrong password, or a database that does not exist, no other host is tried. */
function mayBeAnswerOfOneHost(error: unknown): boolean {
  const code = (error as { readonly code?: unknown }).code;
  const isOfServer = error instanceof pg.DatabaseError;
  return !isOfServer || code === CANNOT_CONNECT_NOW;
}

function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, at: Math.random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item);
}
