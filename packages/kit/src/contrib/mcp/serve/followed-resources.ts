import type { Exchange } from '../../../http/exchange/exchange.ts';
import { isKitError } from '../../../errors/kit-error.ts';
import { routeNews } from '../../../http/serve/route-news.ts';
import { requestOf } from '../calls/call-tool.ts';
import type { CallerTools } from '../tools/caller-tools.ts';
import { resourceAt } from './resources.ts';

/** Resources that one caller follows. */
export interface FollowedResources {
  /** Those that can be followed. */
  readonly uris: readonly string[];
  /** Settles when one of them ends: the signal was aborted, its caller may not read it any more, or the server stops. Then all of them have ended. */
  readonly ended: Promise<void>;
}

/** Tells when resources change, each by its address. What happens from the return on is told; what a caller cannot see is not. */
export type FollowResources = (uris: readonly string[], signal: AbortSignal, onNews: (uri: string) => void) => Promise<FollowedResources>;

/**
 * Follows resources for one caller. What does not exist, what the caller cannot see, and what has no live list are left out alike. Each of them is a
 * request of its operation and an open stream of the caller.
 */
export async function followResources(
  tools: CallerTools,
  exchange: Exchange,
  ...[asked, signal, onNews]: Parameters<FollowResources>
): Promise<FollowedResources> {
  const aborter = new AbortController();
  const both = AbortSignal.any([signal, aborter.signal]);
  const begun: Begun[] = [];
  try {
    // One after the other: each takes a connection of the database for a moment.
    for (const uri of [...new Set(asked)].slice(0, exchange.host.inputLimits.streamsPerCaller)) {
      const each = await begin(tools, exchange, uri, both);
      if (each !== undefined) begun.push(each);
    }
  } catch (error) {
    for (const { news } of begun) await news.return?.();
    throw error;
  }
  const ended = Promise.all(begun.map((each) => tell(each, exchange, onNews).finally(() => aborter.abort())));
  return { uris: begun.map(({ uri }) => uri), ended: ended.then(() => undefined) };
}

interface Begun {
  readonly uri: string;
  readonly news: AsyncIterator<void>;
}

async function begin(tools: CallerTools, exchange: Exchange, uri: string, signal: AbortSignal): Promise<Begun | undefined> {
  const found = await resourceAt(tools, exchange, uri);
  if (found?.tool.route.route.news === undefined) return undefined;
  // A list is followed whole, not by its pages.
  const call = requestOf({ ...found.tool, rows: null }, exchange, found.given);
  if (call.bodyError !== undefined) return undefined;
  const news = routeNews(found.tool.route, call, signal);
  try {
    // The first one says that it has begun.
    return (await news.next()).done === true ? undefined : { uri, news };
  } catch (error) {
    if (isKitError(error) && error.status < 500) return undefined;
    throw error;
  }
}

async function tell({ uri, news }: Begun, exchange: Exchange, onNews: (uri: string) => void): Promise<void> {
  try {
    while ((await news.next()).done !== true) onNews(uri);
  } catch (error) {
    if (!isKitError(error) || error.status >= 500) exchange.log.error({ err: error }, 'mcp: a resource could not be followed any more');
  }
}
