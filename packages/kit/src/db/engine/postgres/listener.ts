import pg from 'pg';
import type { ListenOptions, NotificationListener } from '../engine.ts';
import type { DbLog } from '../../log.ts';
import type { Session } from './session.ts';

export interface PostgresListenerOptions {
  readonly open: () => Promise<Session>;
  /** A listener sends nothing by itself: it asks the server this often whether it is there, and waits as long for the answer. 0: never. */
  readonly answerMsMax: number;
  /** A connection that is older is replaced: the address may lead elsewhere by now. */
  readonly ageMsMax: number;
  readonly log: DbLog;
}

interface Subscription {
  readonly channel: string;
  readonly listener: NotificationListener;
  readonly options: ListenOptions;
  /** Was told that the connection is lost, and not yet that it is back. */
  isDown: boolean;
}

const RECONNECT_MS_MIN = 100;
const RECONNECT_MS_MAX = 3000;
const ANSWER_MS_MAX = 10_000;
/** A server that takes no changes has nothing to notify of. Another is looked for at once, then less often. */
const READ_ONLY_MS_MIN = 1000;
const READ_ONLY_MS_MAX = 60_000;

const READ_ONLY = `select current_setting('transaction_read_only') as value`;

/** LISTEN on a connection of its own, opened with the first listener and re-opened whenever it is lost. */
export class PostgresListener {
  readonly #options: PostgresListenerOptions;
  readonly #log: DbLog;
  readonly #subscriptions = new Set<Subscription>();
  #session: Session | undefined;
  #connecting: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #heartbeat: NodeJS.Timeout | undefined;
  #isChecking = false;
  #openedAt = 0;
  #expiresAt = 0;
  #readOnlyMs = READ_ONLY_MS_MIN;
  #closed = false;

  constructor(options: PostgresListenerOptions) {
    this.#options = options;
    this.#log = options.log;
  }

  async listen(channel: string, listener: NotificationListener, options: ListenOptions): Promise<() => Promise<void>> {
    const subscription: Subscription = { channel, listener, options, isDown: false };
    this.#subscriptions.add(subscription);
    try {
      if (this.#session === undefined) await (this.#connecting ??= this.#connect());
      // Also for a channel that others listen to: their LISTEN may still be on its way.
      await this.#ask(this.#session, `listen ${pg.escapeIdentifier(channel)}`);
    } catch (error) {
      this.#subscriptions.delete(subscription);
      throw error;
    }
    return async () => {
      if (!this.#subscriptions.delete(subscription) || this.#has(channel)) return;
      await this.#ask(this.#session, `unlisten ${pg.escapeIdentifier(channel)}`).catch(() => undefined);
    };
  }

  /** A server that does not answer in time loses the connection. */
  async #ask(session: Session | undefined, text: string): Promise<void> {
    await session?.within(this.#answerMsMax, session.client.query(text));
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    clearInterval(this.#heartbeat);
    this.#subscriptions.clear();
    await this.#connecting?.catch(() => undefined);
    const session = this.#session;
    this.#session = undefined;
    clearInterval(this.#heartbeat);
    await session?.close();
  }

  get #answerMsMax(): number {
    return this.#options.answerMsMax || ANSWER_MS_MAX;
  }

  #has(channel: string): boolean {
    return [...this.#subscriptions].some((each) => each.channel === channel);
  }

  /** Asks the server whether it is there and takes changes, and leaves it when not. */
  check(): void {
    const session = this.#session;
    if (session === undefined || this.#isChecking) return;
    this.#isChecking = true;
    void this.#checked(session).finally(() => (this.#isChecking = false));
  }

  async #checked(session: Session): Promise<void> {
    try {
      const { rows } = await session.within(this.#answerMsMax, session.client.query<{ value: string }>(READ_ONLY));
      if (rows[0]?.value === 'off') this.#readOnlyMs = READ_ONLY_MS_MIN;
      else this.#leaveReadOnly(session);
    } catch {
      session.destroy();
    }
    if (performance.now() > this.#expiresAt) void session.close();
  }

  #leaveReadOnly(session: Session): void {
    if (performance.now() - this.#openedAt < this.#readOnlyMs) return;
    this.#readOnlyMs = Math.min(2 * this.#readOnlyMs, READ_ONLY_MS_MAX);
    void session.close();
  }

  async #connect(): Promise<void> {
    const { open, answerMsMax, ageMsMax } = this.#options;
    try {
      const session = await open();
      const { client } = session;
      for (const event of ['error', 'end']) client.once(event, () => this.#lost(session));
      client.on('notification', ({ channel, payload }) => this.#deliver(channel, payload ?? ''));
      try {
        for (const channel of new Set([...this.#subscriptions].map((each) => each.channel)))
          await this.#ask(session, `listen ${pg.escapeIdentifier(channel)}`);
      } catch (error) {
        session.destroy();
        throw error;
      }
      this.#session = session;
      this.#openedAt = performance.now();
      this.#expiresAt = this.#openedAt + ageMsMax * (1 - Math.random() / 5);
      clearInterval(this.#heartbeat);
      if (answerMsMax > 0) this.#heartbeat = setInterval(() => this.check(), answerMsMax).unref();
      this.#restored();
    } finally {
      this.#connecting = undefined;
    }
  }

  #deliver(channel: string, payload: string): void {
    for (const each of this.#subscriptions) if (each.channel === channel) this.#guard(() => each.listener(payload));
  }

  #lost(session: Session): void {
    if (this.#session !== session) return;
    this.#session = undefined;
    session.destroy();
    clearInterval(this.#heartbeat);
    this.#log.warn({}, 'the connection that listens for notifications was lost; reconnecting');
    for (const each of this.#subscriptions) {
      each.isDown = true;
      this.#guard(() => each.options.onDisconnect?.());
    }
    this.#reconnectIn(RECONNECT_MS_MIN);
  }

  /** What opened the new connection: the timer, or a new listener that could not wait for it. */
  #restored(): void {
    for (const each of this.#subscriptions) {
      if (!each.isDown) continue;
      each.isDown = false;
      this.#guard(() => each.options.onReconnect?.());
    }
  }

  #reconnectIn(waitMs: number, passedMs = 0): void {
    if (this.#closed) return;
    const pauseMs = Math.max(0, waitMs * (0.5 + Math.random() / 2) - passedMs);
    this.#timer = setTimeout(() => void this.#reconnect(waitMs), pauseMs);
    this.#timer.unref();
  }

  async #reconnect(waitMs: number): Promise<void> {
    if (this.#closed || this.#session !== undefined) return;
    const startedAt = performance.now();
    try {
      await (this.#connecting ??= this.#connect());
    } catch {
      // A host that does not answer has taken its time: the next attempt need not wait as well.
      this.#reconnectIn(Math.min(waitMs * 2, RECONNECT_MS_MAX), performance.now() - startedAt);
    }
  }

  #guard(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#log.error({ err: error }, 'a notification listener failed');
    }
  }
}
