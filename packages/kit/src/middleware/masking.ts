import type { RouteSchema } from '../http/exchange/compiled-route.ts';

export const MASK = '[masked]';

/** Names that hold credentials wherever they appear; a schema marks its own with `x-sensitive`. */
const SENSITIVE =
  /password|passphrase|passwd|^pass$|secret|token|credential|authorization|cookie|session|signature|api[-_]?key|private[-_]?key|^(code|key|sig|otp|pin)$/i;

export function isSensitiveName(name: string): boolean {
  return SENSITIVE.test(name);
}

type Properties = Readonly<Record<string, { readonly 'x-sensitive'?: boolean }>>;

function propertiesOf(schema: RouteSchema | undefined): Properties {
  return (schema?.json['properties'] as Properties | undefined) ?? {};
}

/** The path that was asked for, with the values of sensitive parameters masked. A pattern without any is returned as it came. */
export function maskedPath(path: string, pattern: string, params: RouteSchema | undefined): string {
  const places = sensitivePlaces(pattern, params);
  if (places.size === 0) return path;
  // A request line may hold a whole address (`GET http://host/path`): its parts would not be those of the pattern.
  const actual = path.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, '').split('/');
  return actual.map((text, index) => (places.has(index) ? MASK : text)).join('/');
}

const NO_PARAMS = {};
/** Of the patterns of an application, which are asked about with every request. */
const knownPlaces = new WeakMap<object, Map<string, ReadonlySet<number>>>();

/** Which parts of the pattern are sensitive parameters. */
function sensitivePlaces(pattern: string, params: RouteSchema | undefined): ReadonlySet<number> {
  const owner = params ?? NO_PARAMS;
  let known = knownPlaces.get(owner);
  if (known === undefined) knownPlaces.set(owner, (known = new Map()));
  let found = known.get(pattern);
  if (found === undefined) {
    const described = propertiesOf(params);
    const isSensitive = (part: string): boolean => {
      const name = part.slice(1).replace(/\W.*$/, '');
      return part.startsWith(':') && (isSensitiveName(name) || described[name]?.['x-sensitive'] === true);
    };
    found = new Set(pattern.split('/').flatMap((part, index) => (isSensitive(part) ? [index] : [])));
    known.set(pattern, found);
  }
  return found;
}

/** Which declared query parameters were given. Values, and undeclared names, may be credentials: they are left out. */
export function declaredQueryNames(url: string, query: RouteSchema | undefined): string[] {
  const start = url.indexOf('?');
  if (start < 0) return [];
  const declared = propertiesOf(query);
  return [...new Set(new URLSearchParams(url.slice(start + 1)).keys())].filter((name) => Object.hasOwn(declared, name)).sort();
}
