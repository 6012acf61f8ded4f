import { admitsAnonymous } from '../../permissions/admits-anonymous.ts';
import { includesKind, rulesOf, type Permission, type Rule } from '../../permissions/permission.ts';
import { isConcreteScope } from '../../permissions/scope.ts';
import { throttleFaults, type ThrottleRates } from '../../throttle/throttle.ts';
import type { CompiledRoute } from '../exchange/compiled-route.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import type { Fault } from '../../options/fault.ts';
import { pathParameters } from '../declare/path-params.ts';
import { flattened, propertiesOf } from '../json/schema-node.ts';

/** What a whole route can have wrong with it, once compiled. */
export function routeFaults(route: CompiledRoute, rules: Readonly<Record<string, Rule>>, rates: ThrottleRates): Fault[] {
  const where = `${route.controller}.${route.field}`;
  return [
    ...pathFaults(where, route),
    ...scopeFaults(where, route),
    ...ruleFaults(where, route.permission, rules),
    ...throttleFaults(route.throttles, rates).map((message) => ({ id: 'E009', message: `${where}: ${message}` })),
    ...publicWriteFaults(where, route),
    ...atomicFaults(where, route),
    ...cookieFaults(where, route),
  ];
}

function pathFaults(where: string, { path, params }: CompiledRoute): Fault[] {
  const inPath = pathParameters(path);
  const inSchema = params === undefined ? [] : propertiesOf(flattened(params.json, params.json)).map(([name]) => name);
  const faults: Fault[] = [];
  for (const name of inPath) {
    if (!inSchema.includes(name)) {
      const hint = didYouMean(name, inSchema).trim() || `Declare it: params: z.object({ ${name}: … }).`;
      faults.push({ id: 'E004', message: `${where}: the path ${path} has ":${name}", the params schema does not.`, hint });
    }
  }
  for (const name of inSchema) {
    if (!inPath.includes(name)) {
      const hint = didYouMean(name, inPath).trim() || `Add ":${name}" to the path or remove it from params.`;
      faults.push({ id: 'E004', message: `${where}: the params schema has "${name}", the path ${path} does not.`, hint });
    }
  }
  if (new Set(inPath).size !== inPath.length) {
    faults.push({ id: 'E004', message: `${where}: a parameter appears twice in ${path}.`, hint: 'Give each its own name.' });
  }
  return faults;
}

/** A mount, a prefix and a route's path are joined as they are: each must be a path of its own. */
export function partFaults(where: string, parts: readonly string[]): Fault[] {
  return parts
    .filter((part) => !/^\/(?:[^/?#\s]+(?:\/[^/?#\s]+)*)?$/.test(part))
    .map((part) => ({
      id: 'E004',
      message: `${where}: ${JSON.stringify(part)} is not a path.`,
      hint: 'Paths start with "/", do not end with it, and contain no "//", "?", "#" or space.',
    }));
}

function scopeFaults(where: string, { scope, permission }: CompiledRoute): Fault[] {
  if (scope === undefined) return [];
  if (!isConcreteScope(scope)) {
    return [
      {
        id: 'E005',
        message: `${where}: the scope ${JSON.stringify(scope)} is not of the form <resource>:<action>.`,
        hint: 'Lower case, no wildcard: "orders:read".',
      },
    ];
  }
  if (includesKind(permission, 'has_scopes')) return [];
  return [
    {
      id: 'E005',
      message: `${where}: declares the scope "${scope}" but its permission never checks it.`,
      hint: 'Add hasScopes() to the permission.',
    },
  ];
}

function ruleFaults(where: string, permission: Permission, rules: Readonly<Record<string, Rule>>): Fault[] {
  return rulesOf(permission)
    .filter((name) => !Object.hasOwn(rules, name))
    .map((name) => ({
      id: 'E005',
      message: `${where}: hasRule("${name}") names a rule the app does not have.`,
      hint: didYouMean(name, Object.keys(rules)).trim() || `createApp({ rules: { '${name}': (context, object) => … } }).`,
    }));
}

function publicWriteFaults(where: string, route: CompiledRoute): Fault[] {
  if (route.method === 'GET' || route.method === 'QUERY' || route.throttles.length > 0 || !admitsAnyone(route.permission)) return [];
  return [
    {
      id: 'W003',
      message: `${where}: anyone may ${route.method} ${route.path}, as often as they like.`,
      hint: 'Add throttles: [clientThrottle("…")], or a permission.',
    },
  ];
}

/** A key that cannot do what it promises must not be taken. */
function atomicFaults(where: string, { kind, atomic, idempotency, rawBody, permission, method, route }: CompiledRoute): Fault[] {
  const faults: Fault[] = [];
  const add = (message: string, hint: string) => void faults.push({ id: 'E019', message: `${where}: ${message}`, hint });
  if (kind === 'stream' && atomic !== undefined)
    add('a stream cannot be atomic: it is sent while the handler runs.', 'Remove atomic; open a transaction in the handler.');
  if (idempotency === undefined && atomic !== undefined && rawBody?.stream === true && rawBody.read === undefined)
    add(
      'is atomic and reads its body as a stream: the transaction would wait for the client.',
      'Take the body as bytes, or open a transaction in the handler when the body has been read.',
    );
  if (idempotency === undefined) return faults;
  if (kind === 'stream') add('a stream cannot be idempotent: its events are not stored.', 'Remove idempotent.');
  else if (atomic === undefined && route.isAtomicWithKey !== true)
    add('is idempotent but not atomic: the change and its idempotency record need one transaction.', 'Add atomic: true and write with tx.');
  // An import is limited to a size that fits in memory.
  if (rawBody?.stream === true && route.isAtomicWithKey !== true)
    add('is idempotent and reads its body as a stream: two requests cannot be compared.', 'Remove idempotent, or take the body as bytes.');
  if (method === 'GET' || method === 'QUERY') add(`${method} is a read and can be repeated anyway.`, 'Remove idempotent.');
  if (admitsAnonymous(permission, method) && idempotency.anonymous === undefined)
    add(
      'is idempotent and admits anonymous callers, but has no idempotent.anonymous to identify them.',
      'Require authentication, or set idempotent: { anonymous: ({ headers }) => … }.',
    );
  return faults;
}

/** A token of RFC 9110, as RFC 6265 wants it. */
const COOKIE_NAME = /^[!#$%&'*+\-.^_`|~\dA-Za-z]+$/;

function cookieFaults(where: string, { cookies, kind }: CompiledRoute): Fault[] {
  if (cookies === undefined) return [];
  const add = (message: string, hint: string): Fault => ({ id: 'E008', message: `${where}: ${message}`, hint });
  if (kind !== 'json') {
    const what = kind === 'stream' ? 'a stream' : 'a route with a raw response';
    return [add(`${what} cannot declare cookies.`, 'Use query parameters, or read request.headers.cookie in the handler.')];
  }
  return propertiesOf(flattened(cookies.json, cookies.json)).flatMap(([name, node]) => {
    if (!COOKIE_NAME.test(name))
      return [add(`${JSON.stringify(name)} cannot be the name of a cookie.`, "Use letters, digits and !#$%&'*+-.^_`|~ only.")];
    const types = new Set([flattened(node, cookies.json)['type']].flat());
    if (types.has('array') || types.has('object'))
      return [add(`the cookie "${name}" is a list or an object.`, 'A cookie is one text: declare a text, a number or a boolean.')];
    return [];
  });
}

export function admitsAnyone({ kind, combinator, parts }: Permission): boolean {
  if (combinator === 'all') return parts.every(admitsAnyone);
  if (combinator === 'any') return parts.some(admitsAnyone);
  return kind === 'allow_any';
}

/** Two operations on one method and path, whatever their parameters are called; two operations under one id. */
export function collisionFaults(routes: readonly CompiledRoute[]): Fault[] {
  const faults: Fault[] = [];
  const byPath = new Map<string, CompiledRoute>();
  const byId = new Map<string, CompiledRoute>();
  for (const route of routes) {
    const name = `${route.controller}.${route.field}`;
    const key = `${route.method} ${route.path.replaceAll(/:[A-Za-z_]\w*/g, ':').toLowerCase()}`;
    const samePath = byPath.get(key);
    if (samePath !== undefined) {
      const other = `${samePath.controller}.${samePath.field}`;
      // A route of one's own at the address of a generic operation of the same controller.
      const isGeneric = samePath.controller === route.controller && (samePath.metadata['crud'] ?? route.metadata['crud']) !== undefined;
      faults.push({
        id: isGeneric ? 'E018' : 'E003',
        message: `${other} and ${name} both answer ${route.method} ${route.path}.`,
        hint: 'Mount one of them elsewhere or change its path.',
      });
    } else byPath.set(key, route);
    const sameId = byId.get(route.operationId);
    if (sameId !== undefined && samePath === undefined) {
      const other = `${sameId.controller}.${sameId.field}`;
      faults.push({
        id: 'E003',
        message: `${other} and ${name} have the same operation id "${route.operationId}".`,
        hint: 'Rename a class or field, or set operationId.',
      });
    } else byId.set(route.operationId, route);
  }
  return faults;
}
