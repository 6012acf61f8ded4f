import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import { request as requestTls } from 'node:https';
import { RemoteSourceError } from './errors.ts';
import type { SectionAddress } from './options.ts';
import { readTlsMaterial } from './tls.ts';

// Not imported: see ../node-http.ts. This folder runs without the others.
const nodeHttp = process.getBuiltinModule('node:http');

/**
 * One GET on a connection of its own, up to the response's headers. A connection is never reused: one signal then bounds everything from
 * name lookup to last byte, and renewed certificates take effect at once.
 */
export async function openExchange(
  address: SectionAddress,
  suffix: '' | '/stream',
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const url = `${address.base}/${address.application}/${address.profile}${suffix}`;
  const options: RequestOptions = {
    agent: false,
    signal,
    headers: { ...headers, authorization: `Bearer ${address.token}` },
  };
  if (!address.base.startsWith('https:')) return answerOf(nodeHttp.request(url, options), address);
  const material = await readTlsMaterial(address.tls);
  // Named, so that NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment cannot turn verification off for secrets.
  return answerOf(requestTls(url, { ...options, ...material, rejectUnauthorized: true }), address);
}

function answerOf(request: ClientRequest, address: SectionAddress): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.on('response', resolve);
    // Also after the response began, where the response reports it: an error event without a listener would end the process.
    request.on('error', (error) => reject(connectionError(error, address)));
    // A response that switches protocols ends the request with neither of the above.
    request.on('close', () => reject(new RemoteSourceError('connection', `${address.base} closed the connection without a response`)));
    request.end();
  });
}

/** Only the error's code is taken over: its other properties may hold response bytes. */
export function connectionError(error: unknown, address: SectionAddress): RemoteSourceError {
  if (error instanceof RemoteSourceError) return error;
  const code = (error as NodeJS.ErrnoException).code ?? 'unknown';
  if (/^(ERR_SSL|ERR_TLS|ERR_OSSL|CERT_|EPROTO|UNABLE_|DEPTH_ZERO|SELF_SIGNED|HOSTNAME_|INVALID_CA)/.test(code)) {
    return new RemoteSourceError('tls', `TLS with ${address.base} failed: ${code}`);
  }
  return new RemoteSourceError('connection', `no complete response from ${address.base}: ${code}`);
}

/** The error a response stands for, or undefined when its status is one of `expected`. */
export function statusError(
  response: IncomingMessage,
  expected: readonly number[],
  address: SectionAddress,
): RemoteSourceError | undefined {
  const status = response.statusCode ?? 0;
  if (expected.includes(status)) return undefined;
  const section = `${address.application}/${address.profile}`;
  if (status === 401) return new RemoteSourceError('unauthenticated', `${address.base} refused the token`, { status });
  if (status === 403) return new RemoteSourceError('forbidden', `${address.base} refused access to ${section}`, { status });
  if (status === 404) return new RemoteSourceError('not-found', `${address.base} has no ${section} for this token`, { status });
  const retryAfterMs = parseRetryAfter(response.headers['retry-after']);
  const message = `${address.base} answered ${status} for ${section}${status >= 300 && status < 400 ? '; redirects are not followed' : ''}`;
  return new RemoteSourceError('status', message, { status, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) });
}

// A server, or an impostor, must not be able to stop a client forever.
const RETRY_AFTER_MS_MAX = 300_000;

function parseRetryAfter(value: string | undefined): number | undefined {
  if (value === undefined || !/^\d{1,9}$/.test(value)) return undefined;
  return Math.min(Number(value) * 1_000, RETRY_AFTER_MS_MAX);
}

export function checkMediaType(response: IncomingMessage, expected: string, address: SectionAddress): void {
  const given = response.headers['content-type']?.split(';')[0]?.trim().toLowerCase();
  if (given !== expected) throw new RemoteSourceError('content-type', `${address.base} answered with another media type than ${expected}`);
}
