import { dbErrors } from '../db/errors.ts';
import { coreErrors } from '../errors/core-errors.ts';
import type { CompiledRoute, RaisedError } from '../http/exchange/compiled-route.ts';
import { idempotencyErrors } from '../http/errors.ts';
import { safeMethods } from '../permissions/built-ins.ts';
import { admitsAnonymous, needsCsrfProof, needsRecentLogin, needsRole, needsScope, needsStaff } from './access.ts';

/**
 * Errors of every operation: failures of the server and its database, a write that lost to another one, and requests that are not read, such as
 * JSON with a fault or a body where there is none. `default` of the document.
 */
export const ERRORS_ANYWHERE: readonly RaisedError[] = [
  coreErrors.malformed_url,
  coreErrors.malformed_request,
  coreErrors.unexpected_body,
  coreErrors.malformed_body,
  coreErrors.too_deep,
  coreErrors.too_many_members,
  coreErrors.too_many_items,
  idempotencyErrors.idempotency_not_supported,
  coreErrors.not_acceptable,
  coreErrors.request_timeout,
  coreErrors.body_too_large,
  coreErrors.uri_too_long,
  coreErrors.unsupported_media_type,
  coreErrors.headers_too_large,
  coreErrors.internal_error,
  coreErrors.unavailable,
  coreErrors.deadline_exceeded,
  // Any route may write in a transaction of its own.
  dbErrors.write_conflict,
  dbErrors.value_not_storable,
  dbErrors.statement_timeout,
  dbErrors.too_busy,
  dbErrors.database_busy,
  dbErrors.database_unavailable,
  dbErrors.database_read_only,
  dbErrors.storage_full,
  dbErrors.database_damaged,
  dbErrors.commit_unknown,
];

/** Every error the operation is known to answer with: those it declares and those its own options imply. */
export function errorsOfRoute(route: CompiledRoute): readonly RaisedError[] {
  const found: RaisedError[] = [...route.raises];
  const add = (when: boolean, ...definitions: RaisedError[]): void => {
    if (when) found.push(...definitions);
  };
  const open = admitsAnonymous(route);
  const { params, query, headers, cookies, body, rawBody } = route;
  // Other bodies than JSON have their own types and limits.
  add(rawBody !== undefined, coreErrors.malformed_body, coreErrors.body_too_large, coreErrors.unsupported_media_type);
  add([params, query, headers, cookies, body].some((schema) => schema !== undefined) || query === undefined, coreErrors.validation_error);
  add(true, ...route.authenticators.flatMap(({ raises = [coreErrors.invalid_credentials] }) => raises));
  add(!open, coreErrors.not_authenticated, coreErrors.permission_denied);
  add(open && route.permission.kind !== 'allow_any', coreErrors.permission_denied);
  // A row of an owner is written by somebody, also where everyone may try.
  add(open && route.metadata['crud'] !== undefined && !safeMethods.has(route.method), coreErrors.not_authenticated);
  add(needsScope(route), coreErrors.scope_required, coreErrors.insufficient_scope);
  add(needsStaff(route), coreErrors.second_factor_required);
  add(needsRole(route), coreErrors.tenant_required);
  add(needsRecentLogin(route), coreErrors.recent_login_required);
  add(needsCsrfProof(route), coreErrors.csrf_failed);
  add(route.path.includes(':') || route.path.includes('*'), coreErrors.not_found);
  add(route.throttles.length > 0, coreErrors.throttled);
  add(route.kind === 'stream', coreErrors.too_many_streams);
  if (route.idempotency !== undefined) {
    const { idempotency_key_required: required, idempotency_not_supported: _unsupported, ...others } = idempotencyErrors;
    add(true, ...Object.values(others));
    add(route.idempotency.isRequired, required);
  }
  const seen = new Set<string>();
  return found
    .map(({ status, code, detail, members }) => ({ status, code, detail, members }))
    .filter(({ status, code }) => !seen.has(`${status} ${code}`) && seen.add(`${status} ${code}`))
    .sort((a, b) => a.status - b.status || (a.code < b.code ? -1 : 1));
}
