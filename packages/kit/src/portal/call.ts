import { coreErrors } from '../errors/core-errors.ts';
import { isKitError, KitError, type FieldError } from '../errors/kit-error.ts';
import { jsonValue } from '../db/values/json-value.ts';
import type { CompiledRoute } from '../http/exchange/compiled-route.ts';
import { Exchange } from '../http/exchange/exchange.ts';
import { callRoute } from '../http/serve/call-route.ts';
import type { AdminContext } from '../app/admin/declaration.ts';

export interface Called {
  readonly status: number;
  readonly body: unknown;
  readonly headers: Readonly<Record<string, unknown>>;
}

/** Headers that describe the request of the page; the credential, its CSRF token, the host and whatever names a tenant are shared. */
const OF_THE_PAGE = new Set([
  'accept',
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'idempotency-key',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-unmodified-since',
  'last-event-id',
  'range',
  'transfer-encoding',
]);

export interface Call {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** Calls an operation as the person who looks at the page: the same admission, rules and transaction as its HTTP request. An error is thrown. */
export async function callOperation(
  route: CompiledRoute,
  { exchange }: AdminContext,
  { params = {}, query = {}, body }: Call,
): Promise<Called> {
  if (!(exchange instanceof Exchange)) throw new Error('A page of the portal needs the request that asks for it.');
  const search = new URLSearchParams(query).toString();
  const path = route.path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ''));
  const key = exchange.headers['idempotency-key'];
  const answer = await callRoute(
    route,
    {
      url: search === '' ? path : `${path}?${search}`,
      params,
      headers: {
        ...sharedHeaders(exchange),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(route.idempotency === undefined || key === undefined ? {} : { 'idempotency-key': key }),
      },
      ...(body === undefined ? {} : { body }),
      requestId: exchange.requestId,
      remoteAddress: exchange.request.raw.socket.remoteAddress ?? '',
      parent: exchange,
    },
    exchange.signal,
  );
  if (answer.status >= 400) throw errorOf(answer);
  return answer;
}

/** Headers of the page's request that its calls have, too. */
export function sharedHeaders({ headers, requestId }: Exchange): Readonly<Record<string, string | string[] | undefined>> {
  const shared = Object.entries(headers).filter(([name]) => !OF_THE_PAGE.has(name));
  return { ...Object.fromEntries(shared), accept: 'application/json', 'x-request-id': requestId };
}

/** The body of a response that is JSON. */
export function jsonOf({ body }: Called): Readonly<Record<string, unknown>> {
  const text = textOf(body);
  return text === '' ? {} : (jsonValue(text) as Record<string, unknown>);
}

export function textOf(body: unknown): string {
  if (body === undefined || body === null) return '';
  return typeof body === 'string' ? body : Buffer.from(body as Uint8Array).toString();
}

/** What the operation rejects is what the page rejects. */
function errorOf(answer: Called): KitError {
  let problem: Readonly<Record<string, unknown>>;
  try {
    problem = jsonOf(answer);
  } catch {
    return coreErrors.internal_error();
  }
  const { type: _type, title, status: _status, code, detail, errors, request_id: _id, ...extensions } = problem;
  const retryAfter = answer.headers['retry-after'];
  return new KitError({
    code: typeof code === 'string' ? code : 'internal_error',
    status: answer.status,
    detail: typeof detail === 'string' ? detail : 'The operation failed.',
    ...(typeof title === 'string' ? { title } : {}),
    ...(Array.isArray(errors) ? { errors: errors as FieldError[] } : {}),
    extensions,
    ...(typeof retryAfter === 'string' ? { headers: { 'retry-after': retryAfter } } : {}),
  });
}

/** Null: this caller may not see it. */
export async function unlessRefused<T>(work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    if (isKitError(error) && error.status < 500) return null;
    throw error;
  }
}

/** A response that is a file, piece by piece. */
export async function* pieces(
  context: AdminContext,
  route: CompiledRoute,
  query: Readonly<Record<string, string>>,
): AsyncGenerator<string, void> {
  const { body } = await callOperation(route, context, { query });
  if (typeof body === 'object' && body !== null && Symbol.asyncIterator in body) {
    for await (const piece of body as AsyncIterable<string | Uint8Array>) yield textOf(piece);
    return;
  }
  yield textOf(body);
}
