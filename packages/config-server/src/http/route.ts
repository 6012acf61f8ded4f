import { isSegment } from '../config/segment-shape.ts';
import { HOST_AND_PORT } from './host.ts';

export type SectionEndpoint = 'document' | 'paths' | 'explain' | 'check' | 'status' | 'stream' | 'history';

/** A path with the shape of a route. Its segments are as they were sent, neither checked nor decoded. */
export type Route =
  | { readonly endpoint: 'metrics' | 'healthz' | 'readyz' }
  | { readonly endpoint: SectionEndpoint; readonly application: string; readonly profile: string; readonly path: string };

const FIXED: ReadonlyMap<string, Route> = new Map([
  ['/metrics', { endpoint: 'metrics' }],
  ['/healthz', { endpoint: 'healthz' }],
  ['/readyz', { endpoint: 'readyz' }],
]);

const BELOW_SECTION: ReadonlyMap<string, SectionEndpoint> = new Map([
  ['paths', 'paths'],
  ['check', 'check'],
  ['status', 'status'],
  ['stream', 'stream'],
  ['history', 'history'],
]);

/** Scheme and host of a request target in absolute form. With user information it is not one: RFC 9110 asks to treat that as an error. */
const SCHEME_AND_HOST = new RegExp(`^https?://${HOST_AND_PORT}(?=[/?]|$)`, 'i');

/**
 * The path and query of a request target. RFC 9112 requires a server to accept `http://host/path` as well as `/path`. No route depends on
 * the host, here or in the Host header, so there is nothing that the two could disagree about.
 */
export function pathOf(target: string): string {
  return target.charCodeAt(0) === 47 ? target : target.replace(SCHEME_AND_HOST, '');
}

/** The route of a path and query, or undefined for a path the server does not have. Nothing is normalised. */
export function routeOf(url: string): Route | undefined {
  const query = url.indexOf('?');
  const path = query === -1 ? url : url.slice(0, query);
  if (path.charCodeAt(0) !== 47) return undefined;
  const second = path.indexOf('/', 1);
  if (second === -1) return FIXED.get(path);
  const application = path.slice(1, second);
  const third = path.indexOf('/', second + 1);
  const profile = third === -1 ? path.slice(second + 1) : path.slice(second + 1, third);
  if (isInvalidSegment(application) || isInvalidSegment(profile)) return undefined;
  if (third === -1) return { endpoint: 'document', application, profile, path: '' };
  const rest = path.slice(third + 1);
  const endpoint = BELOW_SECTION.get(rest);
  if (endpoint !== undefined) return { endpoint, application, profile, path: '' };
  if (!rest.startsWith('explain/')) return undefined;
  const key = rest.slice('explain/'.length);
  if (isInvalidSegment(key) || key.includes('/')) return undefined;
  return { endpoint: 'explain', application, profile, path: key };
}

function isInvalidSegment(segment: string): boolean {
  return segment === '' || segment === '.' || segment === '..';
}

const EXPLAIN_PATH_BYTES_MAX = 512;

/** A decoded application or profile, or undefined when it fails the shape check. */
export function decodeSegment(segment: string): string | undefined {
  const decoded = decode(segment);
  return decoded !== undefined && isSegment(decoded) ? decoded : undefined;
}

export function decodeKeyPath(segment: string): string | undefined {
  const decoded = decode(segment);
  return decoded !== undefined && Buffer.byteLength(decoded) <= EXPLAIN_PATH_BYTES_MAX ? decoded : undefined;
}

function decode(segment: string): string | undefined {
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
