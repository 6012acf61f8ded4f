import {
  createMcpHandler,
  type McpHandlerRequestOptions,
  type McpServerFactory,
  type ServerEvent,
  type ServerEventBus,
} from '@modelcontextprotocol/server';
import type { FollowResources } from './followed-resources.ts';

interface Listen {
  readonly method?: unknown;
  readonly params?: { readonly notifications?: { readonly resourceSubscriptions?: unknown } };
}

/** Whether a message of 2026-07-28 asks for news. */
export function isListen(message: unknown): boolean {
  return (message as Listen | undefined)?.method === 'subscriptions/listen';
}

/** The addresses that a message asks to follow. */
export function askedUris(message: unknown): readonly string[] {
  const given = (message as Listen).params?.notifications?.resourceSubscriptions;
  return Array.isArray(given) ? given.filter((each): each is string => typeof each === 'string') : [];
}

/** The message with those that are followed: the library acknowledges what it is asked for. */
export function askingFor<M>(message: M, uris: readonly string[]): M {
  const { params } = message as Listen;
  if (params?.notifications?.resourceSubscriptions === undefined) return message;
  return { ...message, params: { ...params, notifications: { ...params.notifications, resourceSubscriptions: uris } } };
}

/**
 * Serves one subscription over HTTP. It has a handler of its own, because a bus of the library tells all of its subscriptions the same, and these are news
 * of one caller. When they end, the response is complete, and the client asks again.
 */
export async function serveSubscription(
  factory: McpServerFactory,
  request: Request,
  options: McpHandlerRequestOptions,
  follow: FollowResources,
): Promise<Response> {
  const aborter = new AbortController();
  const early: ServerEvent[] = [];
  let tell: (event: ServerEvent) => void = (event) => early.push(event);
  const followed = await follow(askedUris(options.parsedBody), AbortSignal.any([request.signal, aborter.signal]), (uri) =>
    tell({ kind: 'resource_updated', uri }),
  );
  let isHeard = false;
  const bus: ServerEventBus = {
    publish: () => undefined,
    subscribe(listener) {
      isHeard = true;
      for (const event of early.splice(0)) listener(event);
      tell = listener;
      return () => aborter.abort();
    },
  };
  const handler = createMcpHandler(factory, { bus });
  const response = await handler.fetch(request, { ...options, parsedBody: askingFor(options.parsedBody, followed.uris) });
  void followed.ended.then(() => handler.close());
  if (!isHeard) aborter.abort();
  return response;
}
