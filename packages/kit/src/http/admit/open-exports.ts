import { coreErrors } from '../../errors/core-errors.ts';
import { CallerCounts } from '../exchange/caller-counts.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { Host } from '../exchange/host.ts';
import { openStreamsOf } from './open-streams.ts';

const RETRY_AFTER_SECONDS = 10;

const openExports = new WeakMap<Host, CallerCounts>();

/**
 * Counts an export of this caller until the returned function is called, once or more, and ends it when the caller loses the credential. Throws 429 when the caller has too many: each keeps a connection of
 * the database while it waits for its client. How many a process serves is limited where they get the connection: `too_many_cursors`.
 */
export function countExport(exchange: Exchange): () => void {
  const { host } = exchange;
  const counts = openExports.get(host) ?? new CallerCounts();
  openExports.set(host, counts);
  const max = host.inputLimits.exportsPerCaller;
  const done = counts.add(exchange, max);
  if (done !== undefined) {
    // An export takes up to 15 minutes: it ends with the credential, as a stream of events does.
    const end = openStreamsOf(host).watch(exchange);
    return () => {
      done();
      end();
    };
  }
  throw coreErrors.too_many_exports({
    headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
    extensions: { exports_max: max },
  });
}
