import { Readable } from 'node:stream';
import { countExport } from '../../http/admit/open-exports.ts';
import type { HandlerContext } from '../../http/declare/handler-context.ts';
import { exchangeOf } from '../../http/serve/serve-route.ts';

/** The archive of an export. */
export interface Archive {
  /** Without the extension. */
  readonly name: string;
  readonly size: bigint;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** The response of a route that sends the archive of an export. It ends when the caller loses the credential or the tenant, as an export of a list does. */
export function sendArchive(
  { request, reply, signal }: Pick<HandlerContext, 'request' | 'reply' | 'signal'>,
  { name, size, bytes }: Archive,
): Readable {
  const onEnd = countExport(exchangeOf(request));
  void reply.headers({
    'content-disposition': `attachment; filename="${name}.zip"`,
    'cache-control': 'no-store',
    // Of one that is cut off, the client sees that it is.
    'content-length': String(size),
  });
  const archive = Readable.from(bytes);
  const stop = () => archive.destroy(signal.reason as Error);
  signal.addEventListener('abort', stop, { once: true });
  archive.once('close', () => {
    signal.removeEventListener('abort', stop);
    onEnd();
  });
  return archive;
}
