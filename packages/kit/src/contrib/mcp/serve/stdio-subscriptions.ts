import { isJSONRPCNotification, isJSONRPCRequest, SUBSCRIPTION_ID_META_KEY } from '@modelcontextprotocol/server';
import type { JSONRPCMessage, JSONRPCRequest, Transport } from '@modelcontextprotocol/server';
import type { FollowResources } from './followed-resources.ts';
import { askedUris, askingFor, isListen } from './subscriptions.ts';

type Id = JSONRPCRequest['id'];

/** One subscription. News that come before the library has acknowledged it wait. */
interface Subscription {
  readonly aborter: AbortController;
  readonly early: Set<string>;
  isAcknowledged: boolean;
}

/**
 * Serves subscriptions of 2026-07-28 over a transport. The library acknowledges them and forgets them when they are cancelled; it has no way to tell one
 * of them something, so their news are sent here.
 */
export class SubscribingTransport implements Transport {
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: Transport['onmessage'];
  readonly #wire: Transport;
  readonly #follow: FollowResources;
  readonly #subscriptions = new Map<Id, Subscription>();
  /** Messages are handed on in their order, also while a subscription begins. */
  #before: Promise<void> = Promise.resolve();

  constructor(wire: Transport, follow: FollowResources) {
    this.#wire = wire;
    this.#follow = follow;
    const handlers: Pick<Transport, 'onmessage' | 'onerror' | 'onclose'> = {
      onmessage: (message) => {
        this.#before = this.#before.then(() => this.#receive(message));
      },
      onerror: (error) => this.onerror?.(error),
      onclose: () => {
        for (const id of this.#subscriptions.keys()) this.#drop(id);
        this.onclose?.();
      },
    };
    Object.assign(wire, handlers);
  }

  start(): Promise<void> {
    return this.#wire.start();
  }

  close(): Promise<void> {
    return this.#wire.close();
  }

  async send(message: JSONRPCMessage): Promise<void> {
    await this.#wire.send(message);
    // The library has ended it: its parameters were wrong, or the connection closes.
    if (!('method' in message)) this.#drop(message.id);
    else if (message.method === 'notifications/subscriptions/acknowledged')
      this.#acknowledge(message.params?._meta?.[SUBSCRIPTION_ID_META_KEY]);
  }

  async #receive(message: JSONRPCMessage): Promise<void> {
    if (isJSONRPCNotification(message) && message.method === 'notifications/cancelled') this.#drop(message.params?.['requestId']);
    const asked = isJSONRPCRequest(message) && isListen(message) ? message : undefined;
    this.onmessage?.(asked === undefined ? message : await this.#begin(asked));
  }

  async #begin(message: JSONRPCRequest): Promise<JSONRPCRequest> {
    const { id } = message;
    // A second one with the id is an error of the library's own.
    if (this.#subscriptions.has(id)) return message;
    const subscription: Subscription = { aborter: new AbortController(), early: new Set(), isAcknowledged: false };
    this.#subscriptions.set(id, subscription);
    const onNews = (uri: string): void => {
      if (!subscription.isAcknowledged) subscription.early.add(uri);
      else if (this.#subscriptions.get(id) === subscription) this.#tell(id, uri);
    };
    try {
      const { uris, ended } = await this.#follow(askedUris(message), subscription.aborter.signal, onNews);
      void ended.then(() => this.#end(id, subscription));
      return askingFor(message, uris);
    } catch (error) {
      this.#subscriptions.delete(id);
      this.onerror?.(error as Error);
      return askingFor(message, []);
    }
  }

  #acknowledge(id: unknown): void {
    const subscription = this.#subscriptions.get(id as Id);
    if (subscription === undefined) return;
    subscription.isAcknowledged = true;
    for (const uri of subscription.early) this.#tell(id as Id, uri);
  }

  #tell(id: Id, uri: string): void {
    this.#sendLater({
      jsonrpc: '2.0',
      method: 'notifications/resources/updated',
      params: { uri, _meta: { [SUBSCRIPTION_ID_META_KEY]: id } },
    });
  }

  /** A resource has ended: the client is told, and the library forgets the subscription. */
  #end(id: Id, subscription: Subscription): void {
    if (this.#subscriptions.get(id) !== subscription) return;
    this.#subscriptions.delete(id);
    this.onmessage?.({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } });
    this.#sendLater({ jsonrpc: '2.0', id, result: { resultType: 'complete', _meta: { [SUBSCRIPTION_ID_META_KEY]: id } } });
  }

  #drop(id: unknown): void {
    this.#subscriptions.get(id as Id)?.aborter.abort();
    this.#subscriptions.delete(id as Id);
  }

  #sendLater(message: JSONRPCMessage): void {
    this.#wire.send(message).catch((error: unknown) => this.onerror?.(error as Error));
  }
}

/** What one connection of the versions of 2025 follows: over stdio it lasts, so that it can be told. */
export class ConnectionSubscriptions {
  readonly #follow: FollowResources;
  readonly #followed = new Map<string, AbortController>();

  constructor(follow: FollowResources) {
    this.#follow = follow;
  }

  /** False where the resource cannot be followed. */
  async add(uri: string, onNews: () => void): Promise<boolean> {
    if (this.#followed.has(uri)) return true;
    const aborter = new AbortController();
    this.#followed.set(uri, aborter);
    const forget = (): void => {
      if (this.#followed.get(uri) === aborter) this.#followed.delete(uri);
    };
    try {
      const { uris, ended } = await this.#follow([uri], aborter.signal, onNews);
      void ended.then(forget);
      return uris.length > 0;
    } catch (error) {
      forget();
      throw error;
    }
  }

  remove(uri: string): void {
    this.#followed.get(uri)?.abort();
    this.#followed.delete(uri);
  }

  removeAll(): void {
    for (const uri of this.#followed.keys()) this.remove(uri);
  }
}
