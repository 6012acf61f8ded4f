import type { Exchange } from '../../http/exchange/exchange.ts';
import { objectOf } from '../../options/read-options.ts';
import { either, headerName, listOf, required, rule } from '../../options/value-rule.ts';

/** A place in which requests name their tenant, by its id or its slug. */
export type TenantPlace =
  | {
      /** The name of a header whose value it is: `X-Tenant`. */
      readonly header: string;
    }
  | {
      /** The name of a parameter of the path: `tenant` for routes below `/t/:tenant`. */
      readonly path: string;
    }
  | {
      /** The domain before which it is the first label of the host name: `example.com` for `acme.example.com`. */
      readonly subdomainOf: string;
    };

const parameterName = rule('the name of a path parameter, such as "tenant"', (value) => typeof value === 'string' && /^\w+$/.test(value));
const domain = rule('a domain such as "example.com"', (value) => typeof value === 'string' && /^[a-z0-9-]+(?:\.[a-z0-9-]+)*$/.test(value));

export const tenantPlace = either(
  "{ header: 'X-Tenant' }, { path: 'tenant' } or { subdomainOf: 'example.com' }",
  objectOf<{ header: string }>({ header: required(headerName) }),
  objectOf<{ path: string }>({ path: required(parameterName) }),
  objectOf<{ subdomainOf: string }>({ subdomainOf: required(domain) }),
);
export const tenantPlaces = either(
  "{ header: 'X-Tenant' }, { path: 'tenant' }, { subdomainOf: 'example.com' }, or a list of them",
  tenantPlace,
  listOf(tenantPlace, { min: 1 }),
);

/** Names of hosts that applications have themselves: no tenant is meant by them, and none can have such a slug. */
export const HOSTS_OF_APPS: ReadonlySet<string> = new Set(
  'admin api app assets auth docs help login mail static status support webmaster www'.split(' '),
);

/** Ids and slugs are shorter. */
const NAME_LENGTH_MAX = 255;

/** The names in a request, each once, in the order of the places. An empty one names nothing; one that no database can store is the name of no tenant. */
export function tenantNamesIn(exchange: Exchange, places: readonly TenantPlace[]): readonly string[] {
  const names = places.map((place) => nameIn(exchange, place)).filter((name) => name !== undefined && name !== '') as string[];
  return [...new Set(names)].map((name) => (name.length > NAME_LENGTH_MAX || name.includes('\0') ? ' ' : name));
}

function nameIn(exchange: Exchange, place: TenantPlace): string | undefined {
  if ('header' in place) return exchange.headers[place.header.toLowerCase()]?.toString();
  if ('path' in place) return (exchange.request?.params as Readonly<Record<string, string | undefined>> | undefined)?.[place.path];
  const host = exchange.headers['host']?.toString().toLowerCase().replace(/:\d+$/, '') ?? '';
  const label = host.endsWith(`.${place.subdomainOf}`) ? host.slice(0, -place.subdomainOf.length - 1) : '';
  return HOSTS_OF_APPS.has(label) ? undefined : label;
}

/** Where callers name a tenant, as a part of a sentence. */
export function tenantWords(places: readonly TenantPlace[]): string {
  const words = places.map((place) => {
    if ('header' in place) return `in the header \`${place.header}\``;
    return 'path' in place ? `in the path as \`:${place.path}\`` : `in the host name as \`<slug>.${place.subdomainOf}\``;
  });
  const last = words.pop();
  return words.length === 0 ? (last ?? '') : `${words.join(', ')} or ${last}`;
}

/** The header in which requests name a tenant; undefined where they do so elsewhere only. */
export function tenantHeader(places: readonly TenantPlace[]): string | undefined {
  return places.flatMap((place) => ('header' in place ? [place.header] : []))[0];
}
