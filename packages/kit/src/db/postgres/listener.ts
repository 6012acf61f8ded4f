import pg from 'pg';
import type { ListenOptions, NotificationListener } from '../engine.ts';
import type { DbLog } from '../log.ts';

interface Subscription {
  readonly channel: string;
  readonly listener: NotificationListener;
  readonly options: ListenOptions;
  /** Was told that the connection is lost, and not yet that it is back. */
  isDown: boolean;
}

const RECONNECT_MS_MIN = 100;
const RECONNECT_MS_MAX = 10_000;

/** LISTEN on a connection of its own, opened with the first listener and re-opened whenever it is lost. */
export class PostgresListener {
  readonly #url: string;
  readonly #log: DbLog;
  readonly #subscriptions = new Set<Subscription>();
  #client: pg.Client | undefined;
  #connecting: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(url: string, log: DbLog) {
    this.#url = url;
    this.#log = log;
  }

  async listen(channel: string, listener: NotificationListener, options: ListenOptions): Promise<() => Promise<void>> {
    const subscription: Subscription = { channel, listener, options, isDown: false };
    this.#subscriptions.add(subscription);
    try {
      if (this.#client === undefined) await (this.#connecting ??= this.#connect());
      // Also for a channel that others listen to: their LISTEN may still be on its way.
      await this.#client?.query(`listen ${pg.escapeIdentifier(channel)}`);
    } catch (error) {
      this.#subscriptions.delete(subscription);
      throw error;
    }
    return async () => {
      if (!this.#subscriptions.delete(subscription) || this.#has(channel)) return;
      await this.#client?.query(`unlisten ${pg.escapeIdentifier(channel)}`).catch(() => undefined);
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#subscriptions.clear();
    await this.#connecting?.catch(() => undefined);
    const client = this.#client;
    this.#client = undefined;
    await client?.end().catch(() => undefined);
  }

  #has(channel: string): boolean {
    return [...this.#subscriptions].some((each) => each.channel === channel);
  }

  async #connect(): Promise<void> {
    // keepAlive: a listener sends nothing, so only TCP can notice that the other side is gone.
    const client = new pg.Client({ connectionString: this.#url, keepAlive: true });
    client.on('error', () => this.#lost(client));
    client.on('end', () => this.#lost(client));
    client.on('notification', ({ channel, payload }) => this.#deliver(channel, payload ?? ''));
    try {
      await client.connect();
      for (const channel of new Set([...this.#subscriptions].map((each) => each.channel))) {
        await client.query(`listen ${pg.escapeIdentifier(channel)}`);
      }
      this.#client = client;
      this.#restored();
    } catch (error) {
      await client.end().catch(() => undefined);
      throw error;
    } finally {
      this.#connecting = undefined;
    }
  }

  #deliver(channel: string, payload: string): void {
    for (const each of this.#subscriptions) if (each.channel === channel) this.#guard(() => each.listener(payload));
  }

  #lost(client: pg.Client): void {
    if (this.#client !== client) return;
    this.#client = undefined;
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

  #reconnectIn(waitMs: number): void {
    if (this.#closed) return;
    this.#timer = setTimeout(() => void this.#reconnect(waitMs), waitMs * (0.5 + Math.random() / 2));
    this.#timer.unref();
  }

  async #reconnect(waitMs: number): Promise<void> {
    if (this.#closed || this.#client !== undefined) return;
    try {
      await (this.#connecting ??= this.#connect());
    } catch {
      this.#reconnectIn(Math.min(waitMs * 2, RECONNECT_MS_MAX));
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
