import { cookieValues } from '../declare/read-cookie.ts';
import type { RouteSchema } from '../exchange/compiled-route.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { flattened, propertiesOf } from '../json/schema-node.ts';

/** The headers and cookies that a route declares as its input, as they were sent; empty where it declares none. `without` are names of headers in lower case. */
export function declaredValues(
  { route, headers }: Pick<Exchange, 'route' | 'headers'>,
  without: ReadonlySet<string> = NONE,
): readonly unknown[] {
  if (route?.headers === undefined && route?.cookies === undefined) return [];
  const cookies = cookieValues(headers['cookie']);
  const names = declaredNames(route.headers).map((name) => name.toLowerCase());
  return [
    names.map((name) => (without.has(name) ? undefined : headers[name])),
    declaredNames(route.cookies).map((name) => cookies.get(name)),
  ];
}

const NONE: ReadonlySet<string> = new Set();

function declaredNames(schema: RouteSchema | undefined): string[] {
  return schema === undefined ? [] : propertiesOf(flattened(schema.json, schema.json)).map(([name]) => name);
}
