import { coreErrors } from '../../errors/core-errors.ts';
import type { Fault } from '../../options/fault.ts';
import type { Route } from '../declare/route.ts';

const TAG = 'The version of the response; send it back in `If-None-Match`, or in `If-Match` with a change.';

function isRead({ method }: Route): boolean {
  return method === 'GET' || method === 'QUERY';
}

/** The options of a route with what its `etag` means for documents and clients. */
export function withConditionalFacts(route: Route): Route['options'] {
  const { options } = route;
  const { etag, response, status = response === undefined ? 204 : 200, responses = {}, raises = [], metadata = {} } = options;
  if (etag === undefined) return options;
  const own = responses[status];
  const tagged = { ...responses, [status]: { ...own, headers: { ETag: TAG, ...own?.headers } } };
  if (isRead(route))
    return {
      ...options,
      responses: { 304: { description: 'You have the current version already.', headers: { ETag: TAG } }, ...tagged },
      metadata: documented(metadata, { 'If-None-Match': 'The `ETag` you have: 304 without a body where it is still current.' }, []),
    };
  const header = { 'If-Match': 'The `ETag` of your last read: 412 where the record was changed meanwhile. `*` matches any version.' };
  const isRequired = etag === 'required';
  return {
    ...options,
    responses: tagged,
    raises: [...raises, coreErrors.precondition_failed, ...(isRequired ? [coreErrors.precondition_required] : [])],
    metadata: documented(metadata, header, isRequired ? ['If-Match'] : []),
  };
}

function documented(
  metadata: Readonly<Record<string, unknown>>,
  requestHeaders: Readonly<Record<string, string>>,
  requiredHeaders: readonly string[],
): Readonly<Record<string, unknown>> {
  const before = (metadata['openapi'] ?? {}) as { readonly requestHeaders?: object; readonly requiredHeaders?: readonly string[] };
  return {
    ...metadata,
    openapi: {
      ...before,
      requestHeaders: { ...requestHeaders, ...before.requestHeaders },
      requiredHeaders: [...(before.requiredHeaders ?? []), ...requiredHeaders],
    },
  };
}

export function conditionalFaults(where: string, route: Route): Fault[] {
  // A route without options is reported for that.
  const { etag } = (route.options as Route['options'] | undefined) ?? {};
  if (etag === undefined) return [];
  const add = (message: string, hint: string): Fault[] => [{ id: 'E011', message: `${where}: ${message}`, hint }];
  if (etag !== true && etag !== 'required') return add(`etag is ${JSON.stringify(etag)}.`, "Use true, or 'required' for a change.");
  if (route.kind === 'stream') return add('a stream has no ETag: its events are sent while they are made.', 'Remove etag.');
  if (etag === 'required' && isRead(route)) return add("etag: 'required' is for changes; this is a read.", 'Use etag: true.');
  return [];
}
