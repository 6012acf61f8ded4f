import type { HandlerContext } from './handler-context.ts';
import type { Schema } from './schema.ts';
import type { ServerSentEvent } from './server-sent-event.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- as for the handler of a route: contravariant in the context
type AnyContext = HandlerContext<any, any, any, any, any, any>;

/** What callers that accept `text/event-stream` get instead of the response. */
export interface LiveRoute {
  /** Of the data of an event. */
  readonly response: Schema;
  readonly handler: (context: AnyContext) => AsyncIterable<ServerSentEvent>;
}

/**
 * Tells that the response may be another one by now: once when it begins, then after each batch of changes of what the caller sees. For those that read
 * it again themselves, by `routeNews()`.
 */
export type RouteNews = (context: AnyContext) => AsyncIterable<void>;
