import type { ErrorDefinition } from './catalog.ts';
import { coreErrors } from './core-errors.ts';
import type { KitError } from './kit-error.ts';

/** What the HTTP server under us calls its refusals, in our words. Its own messages are logged, not sent. */
const serverCodes: ReadonlyMap<string, ErrorDefinition> = codes({
  FST_ERR_CTP_BODY_TOO_LARGE: coreErrors.body_too_large,
  FST_ERR_CTP_INVALID_MEDIA_TYPE: coreErrors.unsupported_media_type,
  FST_ERR_ROUTE_MISSING_CONTENT_TYPE: coreErrors.unsupported_media_type,
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: coreErrors.malformed_body,
  FST_ERR_CTP_INVALID_JSON_BODY: coreErrors.malformed_body,
  FST_ERR_CTP_EMPTY_JSON_BODY: coreErrors.malformed_body,
  FST_ERR_VALIDATION: coreErrors.validation_error,
  FST_ERR_NOT_FOUND: coreErrors.not_found,
  FST_ERR_BAD_URL: coreErrors.malformed_url,
  FST_ERR_MAX_PARAM_LENGTH: coreErrors.uri_too_long,
  FST_ERR_ASYNC_CONSTRAINT: coreErrors.not_found,
  FST_ERR_HANDLER_TIMEOUT: coreErrors.deadline_exceeded,
});

/**
 * Node's HTTP parser and socket, reported through `clientError`. Only there: a handler that reads another server's answer meets the same
 * codes, and what that server did wrong is not our caller's fault.
 */
const socketCodes: ReadonlyMap<string, ErrorDefinition> = codes({
  HPE_HEADER_OVERFLOW: coreErrors.headers_too_large,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: coreErrors.body_too_large,
  ERR_HTTP_REQUEST_TIMEOUT: coreErrors.request_timeout,
});

function codes(table: Readonly<Record<string, ErrorDefinition>>): ReadonlyMap<string, ErrorDefinition> {
  return new Map(Object.entries(table));
}

/** Undefined when the value is not one of the server's own refusals: then it is a fault of ours. */
export function translateServerError(thrown: unknown): KitError | undefined {
  if (typeof thrown !== 'object' || thrown === null) return undefined;
  const { code } = thrown as { code?: unknown };
  if (typeof code !== 'string') return undefined;
  return serverCodes.get(code)?.({ cause: thrown });
}

/** For errors that Node reports on the socket, before there is a request. */
export function translateSocketError(error: Error & { readonly code?: string | undefined }): KitError {
  const definition = error.code === undefined ? undefined : socketCodes.get(error.code);
  return (definition ?? coreErrors.malformed_request)({ cause: error });
}
