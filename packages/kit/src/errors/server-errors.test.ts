import { errorCodes } from 'fastify';
import { expect, test } from 'vitest';
import { translateServerError, translateSocketError } from './server-errors.ts';

test.each([
  [errorCodes.FST_ERR_CTP_BODY_TOO_LARGE, 413, 'body_too_large'],
  [errorCodes.FST_ERR_CTP_INVALID_MEDIA_TYPE, 415, 'unsupported_media_type'],
  [errorCodes.FST_ERR_CTP_INVALID_CONTENT_LENGTH, 400, 'malformed_body'],
  [errorCodes.FST_ERR_BAD_URL, 400, 'malformed_url'],
  [errorCodes.FST_ERR_NOT_FOUND, 404, 'not_found'],
])('the server’s own refusal %o is ours: %i %s', (Refusal, status, code) => {
  expect(translateServerError(new Refusal())).toMatchObject({ status, code });
});

test('other errors of the server are faults', () => {
  expect(translateServerError(new errorCodes.FST_ERR_REP_ALREADY_SENT())).toBeUndefined();
  expect(translateServerError(Object.assign(new Error('x'), { code: 'ECONNREFUSED' }))).toBeUndefined();
});

test.each([
  ['ERR_HTTP_REQUEST_TIMEOUT', 408, 'request_timeout'],
  ['HPE_HEADER_OVERFLOW', 431, 'headers_too_large'],
  ['HPE_INVALID_METHOD', 400, 'malformed_request'],
  [undefined, 400, 'malformed_request'],
])('an error on the socket with code %s is %i %s', (socketCode, status, code) => {
  expect(translateSocketError(Object.assign(new Error('x'), { code: socketCode }))).toMatchObject({ status, code });
});

test.each(['HPE_HEADER_OVERFLOW', 'ERR_HTTP_REQUEST_TIMEOUT', 'constructor', '__proto__'])(
  'an error of a handler with code %s is a fault of ours, not of the caller',
  (code) => {
    expect(translateServerError(Object.assign(new Error('x'), { code }))).toBeUndefined();
    expect(translateSocketError(Object.assign(new Error('x'), { code: 'constructor' }))).toMatchObject({ status: 400 });
  },
);
