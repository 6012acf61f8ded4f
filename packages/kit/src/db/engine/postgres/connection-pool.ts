import type pg from 'pg';
import type { PoolStatus } from '../database-observer.ts';
import { dbErrors } from '../../errors.ts';
import type { DbLog } from '../../log.ts';
import { isConnectionFailure, isReadOnlyServer, ServerSilent } from './connection-failure.ts';
import type { Session } from './session.ts';

export interface ConnectionPoolOptions {
  readonly max: number;
  /** How long a caller waits for a connection. */
  readonly waitMsMax: number;
  /** A connection that is older is closed when it comes back. Each ends at a time of its own, up to a fifth earlier. */
  readonly ageMsMax: number;
  readonly open: () => Promise<Session>;
  /** A connection comes back to be used again: it is in no transaction, and no other caller writes to it yet. */
  readonly onReturn: (client: pg.PoolClient) => void;
  /** The server of a connection took no changes. */
  readonly onReadOnly: () => void;
  readonly log: DbLog;
}

/** What the pool knows of a connection. */
interface Place {
  readonly session: Session;
  readonly openedAt: number;
  readonly expiresAt: number;
  isRetired: boolean;
  /** Closes it when nobody has used it for a while. */
  idleTimer: NodeJS.Timeout | undefined;
}

interface Waiter {
  readonly got: (place: Place) => void;
  readonly failed: (error: unknown) => void;
}

/** A connection that nobody uses is closed after so long. */
const IDLE_MS_MAX = 10_000;
/** A server that takes no changes is looked for again by new connections; one that is younger has just done so. */
const READ_ONLY_AGE_MS_MIN = 1000;

/** Connections that are used by one caller at a time. None that is lost, old, or leads to a server that takes no changes is used again. */
export class ConnectionPool {
  readonly #options: ConnectionPoolOptions;
  readonly #places = new Map<Session, Place>();
  /** The last one is used next. */
  readonly #idle: Place[] = [];
  readonly #waiters: Waiter[] = [];
  readonly #closing = new Set<Promise<void>>();
  readonly #opening = new Set<Promise<void>>();
  #onReturned: (() => void) | undefined;
  #isClosed = false;

  constructor(options: ConnectionPoolOptions) {
    this.#options = options;
  }

  get status(): PoolStatus {
    const { max } = this.#options;
    const used = this.#places.size - this.#idle.length + this.#opening.size;
    return { max, used, waiting: Math.max(0, this.#waiters.length - this.#opening.size) };
  }

  /** Every open connection. */
  get sessions(): Iterable<Session> {
    return this.#places.keys();
  }

  /** The caller gives it back with `release`, and says with what error it failed. */
  async acquire(): Promise<pg.PoolClient> {
    if (this.#isClosed) throw new Error('Cannot use a pool after it was closed.');
    const place = this.#takeIdle() ?? (await this.#wait());
    return this.#lend(place);
  }

  /** Connections that were opened before now are not used again: the address may lead elsewhere. */
  retire(): void {
    for (const place of this.#places.values()) place.isRetired = true;
    for (const place of this.#idle.splice(0)) this.#discard(place);
  }

  /** Waits for connections in use as long as a caller waits for one. What is under way then is rolled back. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { failed } of this.#waiters.splice(0)) failed(new Error('Cannot use a pool after it was closed.'));
    for (const place of this.#idle.splice(0)) this.#discard(place);
    const timer = setTimeout(() => this.#abandon(), this.#options.waitMsMax);
    while (this.#places.size + this.#opening.size + this.#closing.size > 0)
      await Promise.race([...this.#opening, ...this.#closing, this.#returned()]);
    clearTimeout(timer);
  }

  /** Code that does not give its connection back must not keep a process from ending. */
  #abandon(): void {
    const { log, waitMsMax } = this.#options;
    log.warn(
      { connections: this.#places.size },
      `connections were still in use ${waitMsMax} ms after the database was closed: they are cut`,
    );
    for (const place of this.#places.values()) {
      this.#onReturned?.();
      this.#discard(place, new ServerSilent('the database was closed'));
    }
  }

  /** Resolves when a connection that is in use comes back. */
  #returned(): Promise<void> {
    return new Promise((done) => (this.#onReturned = done));
  }

  #takeIdle(): Place | undefined {
    for (let place = this.#idle.pop(); place !== undefined; place = this.#idle.pop()) {
      clearTimeout(place.idleTimer);
      if (this.#isUsable(place)) return place;
      this.#discard(place);
    }
    return undefined;
  }

  #isUsable({ session, isRetired, expiresAt }: Place): boolean {
    return !session.isLost && !isRetired && performance.now() < expiresAt && !this.#isClosed;
  }

  #wait(): Promise<Place> {
    return new Promise((got, failed) => {
      const { waitMsMax } = this.#options;
      const timer = setTimeout(() => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        failed(dbErrors.database_unavailable({ message: `no connection to the database was free within ${waitMsMax} ms` }));
      }, waitMsMax);
      timer.unref();
      const waiter: Waiter = {
        got: (place) => {
          clearTimeout(timer);
          got(place);
        },
        failed: (error) => {
          clearTimeout(timer);
          failed(error);
        },
      };
      this.#waiters.push(waiter);
      this.#openForWaiters();
    });
  }

  /** As many connections as callers wait for, while there is room. */
  #openForWaiters(): void {
    while (this.#opening.size < this.#waiters.length && this.#places.size + this.#opening.size < this.#options.max) {
      const opening: Promise<void> = this.#open().finally(() => {
        this.#opening.delete(opening);
        this.#openForWaiters();
      });
      this.#opening.add(opening);
    }
  }

  /** Never rejects: the caller that has waited longest gets the error. */
  async #open(): Promise<void> {
    const openedAt = performance.now();
    let session: Session;
    try {
      session = await this.#options.open();
    } catch (error) {
      this.#waiters.shift()?.failed(error);
      return;
    }
    const expiresAt = openedAt + this.#options.ageMsMax * (1 - Math.random() / 5);
    const place: Place = { session, openedAt, expiresAt, isRetired: false, idleTimer: undefined };
    this.#places.set(session, place);
    session.client.on('error', (error) => this.#lost(place, error));
    session.client.on('end', () => this.#lost(place, undefined));
    this.#hand(place);
  }

  #lend(place: Place): pg.PoolClient {
    const client = place.session.client as pg.PoolClient & pg.Client;
    let isBack = false;
    client.release = (failure) => {
      if (isBack) throw new Error('A connection was given back twice.');
      isBack = true;
      this.#back(place, failure);
    };
    return client;
  }

  #back(place: Place, failure: unknown): void {
    this.#onReturned?.();
    const isBroken = failure !== undefined && failure !== false && !isReadOnlyServer(failure);
    if (isReadOnlyServer(failure) && performance.now() - place.openedAt > READ_ONLY_AGE_MS_MIN) {
      this.retire();
      this.#options.onReadOnly();
    }
    if (isBroken || !this.#isUsable(place)) {
      this.#discard(place, isBroken ? failure : undefined);
      return;
    }
    this.#options.onReturn(place.session.client as pg.PoolClient & pg.Client);
    this.#hand(place);
  }

  /** To the caller that has waited longest, else it is idle. */
  #hand(place: Place): void {
    if (!this.#isUsable(place)) return this.#discard(place);
    const waiter = this.#waiters.shift();
    if (waiter !== undefined) return waiter.got(place);
    place.idleTimer = setTimeout(() => {
      this.#idle.splice(this.#idle.indexOf(place), 1);
      this.#discard(place);
    }, IDLE_MS_MAX);
    this.#idle.push(place);
  }

  /** Whoever uses it meanwhile learns it from the statement that fails. */
  #lost(place: Place, error: unknown): void {
    const index = this.#idle.indexOf(place);
    if (index < 0) return;
    this.#idle.splice(index, 1);
    this.#discard(place);
    this.#options.log.warn({ err: error }, 'an idle PostgreSQL connection was lost; the pool opens another when needed');
  }

  #discard(place: Place, failure?: unknown): void {
    clearTimeout(place.idleTimer);
    this.#places.delete(place.session);
    // A connection that failed is not closed politely: its server may never answer.
    if (failure !== undefined) place.session.destroy(failure instanceof Error && isConnectionFailure(failure) ? failure : undefined);
    const closing: Promise<void> = place.session.close().finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
    this.#openForWaiters();
  }
}
