import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import type { Fault } from '../../options/fault.ts';
import { safeMethods } from '../../permissions/built-ins.ts';

type ReadingRoute = Pick<CompiledRoute, 'controller' | 'field' | 'method' | 'isRead' | 'atomic' | 'middleware' | 'readFrom'>;

/** The aliases that routes read from. */
export function replicasOf(routes: readonly Pick<CompiledRoute, 'readFrom'>[]): ReadonlySet<string> {
  return new Set(routes.flatMap(({ readFrom }) => readFrom ?? []));
}

/** What is wrong with `readFrom`, route by route. `written`: the aliases that the app writes to. */
export function replicaFaults(routes: readonly ReadingRoute[], aliases: readonly string[], written: ReadonlySet<string>): Fault[] {
  return routes.flatMap((route): Fault[] => {
    const { readFrom } = route;
    if (readFrom === undefined) return [];
    const [message, hint] = faultOf(readFrom, route, aliases, written) ?? [];
    return message === undefined
      ? []
      : [{ id: 'E013', message: `${route.controller}.${route.field}: ${message}`, ...(hint === undefined ? {} : { hint }) }];
  });
}

function faultOf(
  readFrom: string,
  { method, isRead, atomic, middleware }: ReadingRoute,
  aliases: readonly string[],
  written: ReadonlySet<string>,
): readonly [message: string, hint: string] | undefined {
  if (!aliases.includes(readFrom))
    return [
      `readFrom is "${readFrom}", a database that the app does not have.`,
      `The app has ${aliases.join(', ')}.${didYouMean(readFrom, aliases)} Name it: createApp({ database: { default: …, ${readFrom}: 'postgres://…' } }).`,
    ];
  if (written.has(readFrom))
    return [`readFrom is "${readFrom}", a database that the app writes to.`, 'Name a replica, or remove readFrom.'];
  if (!isRead && !safeMethods.has(method)) return [`readFrom is for reads, and this is ${method}.`, 'Remove readFrom.'];
  if (atomic !== undefined) return ['readFrom is for reads without a transaction.', 'Remove readFrom, or atomic.'];
  if (middleware.includes('response_cache'))
    return [
      'responses that are kept would show rows of a replica longer than it is behind: after a change they are made again, maybe from old rows.',
      'Remove readFrom, or leave the route out of responseCache().',
    ];
  return undefined;
}
