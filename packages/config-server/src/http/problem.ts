import { responseWith, type HttpResponse } from './response.ts';

/** RFC 9457. Nothing in a problem depends on what was asked for, so each one is made once and equal problems are equal bytes. */
function problem(status: number, title: string, code: string, headers: readonly string[] = []): HttpResponse {
  const body = Buffer.from(JSON.stringify({ type: 'about:blank', title, status, code }));
  return responseWith(status, 'application/problem+json', body, headers);
}

export const BAD_REQUEST: HttpResponse = problem(400, 'Bad Request', 'malformed');
export const UNAUTHENTICATED: HttpResponse = problem(401, 'Unauthorized', 'unauthenticated', ['WWW-Authenticate', 'Bearer']);
export const NOT_FOUND: HttpResponse = problem(404, 'Not Found', 'not-found');
export const METHOD_NOT_ALLOWED: HttpResponse = problem(405, 'Method Not Allowed', 'method-not-allowed', ['Allow', 'GET, HEAD']);
export const REQUEST_TIMEOUT: HttpResponse = problem(408, 'Request Timeout', 'request-timeout');
export const URI_TOO_LONG: HttpResponse = problem(414, 'URI Too Long', 'uri-too-long');
export const HEADERS_TOO_LARGE: HttpResponse = problem(431, 'Request Header Fields Too Large', 'headers-too-large');
export const INTERNAL_ERROR: HttpResponse = problem(500, 'Internal Server Error', 'internal');
export const STREAMS_EXHAUSTED: HttpResponse = problem(503, 'Service Unavailable', 'unavailable', ['Retry-After', '5']);
