import type { Clock } from '../../../db/clock.ts';
import { IDENTITY_LENGTH_MAX } from '../../../db/values/identity-length.ts';
import { isStorableText } from '../../../db/values/storable-text.ts';
import { uuidv7 } from '../../../db/values/uuidv7.ts';
import { withoutKeys } from '../../../auth/people/without-keys.ts';
import { REQUEST_ID_LENGTH_MAX } from '../../../http/exchange/acting-request.ts';
import type { Exchange } from '../../../http/exchange/exchange.ts';
import { declaredQueryNames, maskedPath } from '../../../middleware/masking.ts';
import {
  CODE_LENGTH_MAX,
  METHOD_LENGTH_MAX,
  PATH_LENGTH_MAX,
  ROUTE_LENGTH_MAX,
  SCHEME_LENGTH_MAX,
  VERSION_LENGTH_MAX,
  type REQUEST_CHANNELS,
} from '../models.ts';

/** A row of the log. */
export interface FinishedRequest {
  readonly id: string;
  readonly finishedAt: Date;
  readonly durationMs: number;
  readonly method: string;
  readonly route: string | null;
  readonly path: string | null;
  readonly status: number | null;
  readonly failed: boolean;
  readonly aborted: boolean;
  readonly errorCode: string | null;
  readonly owner: string;
  /** Set a moment later where the request itself did not ask for it. */
  tenant: string;
  readonly scheme: string | null;
  readonly keyId: string | null;
  readonly requestId: string | null;
  readonly version: string | null;
  readonly deprecated: boolean;
  readonly via: (typeof REQUEST_CHANNELS)[number];
}

const API_KEY_SCHEME = 'api_key';
const EVENT_STREAM = /^text\/event-stream/;

/**
 * What a finished request leaves. Of its content there is nothing: no body, no header, no value of the query, and of its address only the parts that are not
 * sensitive. A stranger chooses the address that no operation has, so it is not stored.
 */
export function finishedRequest(exchange: Exchange, clock: Clock): FinishedRequest {
  const { route, reply, principal, parent } = exchange;
  const { raw } = reply;
  const hasResponse = raw.headersSent || reply.sent;
  // An injected request has no socket that its response could finish on.
  const isComplete = raw.writableFinished || 'isLightMyRequest' in raw;
  const isStream = hasResponse && EVENT_STREAM.test(String(reply.getHeader('content-type') ?? ''));
  const aborted = !isComplete && !isStream;
  const status = hasResponse ? reply.statusCode : null;
  const version = reply.getHeader('x-api-version');
  return {
    id: uuidv7(clock),
    finishedAt: clock.now(),
    durationMs: Math.round((performance.now() - exchange.startedAt) * 100) / 100,
    method: exchange.method.slice(0, METHOD_LENGTH_MAX),
    route: route === null ? null : route.path.slice(0, ROUTE_LENGTH_MAX),
    path: route === null ? null : pathOf(exchange),
    status,
    failed: aborted || status === null || status >= 400,
    aborted,
    errorCode: textOf(exchange.errorCode, CODE_LENGTH_MAX),
    owner: idOf(principal?.user.id) ?? '',
    // Whatever names a tenant without a caller is only a wish.
    tenant: principal === null ? '' : (idOf(exchange.knownTenant) ?? ''),
    scheme: textOf(principal?.scheme, SCHEME_LENGTH_MAX),
    keyId: principal?.scheme === API_KEY_SCHEME ? idOf(principal.credentialId) : null,
    requestId: textOf(exchange.requestId, REQUEST_ID_LENGTH_MAX),
    version: typeof version === 'string' ? textOf(version, VERSION_LENGTH_MAX) : null,
    deprecated: route !== null && route.deprecated !== false,
    via: parent === null ? 'http' : 'mcp',
  };
}

/** The tenant that the request names, once it is known to be the caller's; undefined where nothing proves it. Costs a statement at most, and only where the request did not ask. */
export function provenTenant(exchange: Exchange): string | null | undefined | Promise<string | null> {
  if (exchange.principal === null || exchange.route === null || exchange.isTenantAsked) return undefined;
  const found = exchange.tenant;
  return found instanceof Promise ? found.then(idOf, () => null) : idOf(found);
}

const DAY_MS = 86_400_000;
let lastDay = { number: -1, text: '' };

/** In UTC. Most requests are of the day of the one before, and its text costs as much as all the rest of a count. */
export function dayOf(at: Date): string {
  const number = Math.floor(at.getTime() / DAY_MS);
  if (number !== lastDay.number) lastDay = { number, text: at.toISOString().slice(0, 10) };
  return lastDay.text;
}

function pathOf(exchange: Exchange): string | null {
  const { route, url } = exchange;
  if (route === null) return null;
  const end = url.indexOf('?');
  const path = maskedPath(end < 0 ? url : url.slice(0, end), exchange.request.routeOptions.url ?? route.path, route.params);
  const names = end < 0 ? [] : declaredQueryNames(url, route.query);
  return textOf(withoutKeys(names.length === 0 ? path : `${path}?${names.join('&')}`), PATH_LENGTH_MAX);
}

function textOf(text: string | undefined, lengthMax: number): string | null {
  if (text === undefined || text === '') return null;
  const short = text.length > lengthMax ? text.slice(0, lengthMax) : text;
  return isStorableText(short) ? short : null;
}

/** An id that is cut would be another one's. */
function idOf(id: string | null | undefined): string | null {
  return id === undefined || id === null || id === '' || id.length > IDENTITY_LENGTH_MAX || !isStorableText(id) ? null : id;
}
