import type { Principal } from '../../../auth/people/principal.ts';
import type { ApiKey } from '../key/api-key.ts';
import { requireArguments } from '../../../options/read-options.ts';
import { anObject } from '../../../options/value-rule.ts';

const byPrincipal = new WeakMap<Principal, ApiKey>();
const byHeaders = new WeakMap<object, ApiKey>();

/** The scheme of every principal that an API key stands behind, whichever header carried it. */
export const API_KEY_SCHEME = 'api_key';

/** What `currentApiKey` takes: a handler's context, its `request`, or the request of any framework that kept the headers object. */
export interface KeyedRequest {
  /** Of a request: the headers object that was authenticated. */
  readonly headers?: object | undefined;
  /** Of a handler's context: the authenticated principal. */
  readonly principal?: Principal | null | undefined;
  /** Of a handler's context: its request. */
  readonly request?:
    | {
        /** The headers object that was authenticated. */
        readonly headers: object;
      }
    | undefined;
}

/** The key that authenticated the request; null when something else did, or nothing. */
export function currentApiKey(request: KeyedRequest): ApiKey | null {
  if (typeof request !== 'object' || request === null) requireArguments('currentApiKey()', { request }, { request: anObject });
  if (request.principal !== undefined && request.principal !== null) return byPrincipal.get(request.principal) ?? null;
  const headers = request.request?.headers ?? request.headers;
  return headers === undefined ? null : (byHeaders.get(headers) ?? null);
}

/** Requests are told apart by their headers object: it is the one thing the server, the pipeline and the handler all share. */
export function rememberApiKey(headers: object, principal: Principal, apiKey: ApiKey): void {
  byPrincipal.set(principal, apiKey);
  byHeaders.set(headers, apiKey);
}
