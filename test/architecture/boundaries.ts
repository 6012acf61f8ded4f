/**
 * Which ring may import which inside kit, innermost first: a ring may import itself and the rings before it.
 * `testing` is published for users' tests and imported by no source.
 */
export const RINGS = [
  'options',
  'observe',
  'errors',
  'db',
  'di',
  'work',
  'events',
  'auth',
  'permissions',
  'throttle',
  'http',
  'middleware',
  'openapi',
  'app',
  'crud',
  'screens',
  'contrib',
  'admin',
  'portal',
  'cli',
] as const;

/** The rooms of a folder of kit: a file imports its own room and those before it. Beside them are the files that every module has. */
export const ROOMS: Readonly<Record<string, readonly string[]>> = {
  auth: ['people', 'rights', 'request'],
  db: [
    'values',
    'sealing',
    'declare',
    'sql',
    'engine',
    'rows',
    'subjects',
    'backfills',
    'migrations',
    'rollout',
    'kysely',
    'open',
    'transfer',
  ],
  http: ['declare', 'json', 'exchange', 'compile', 'admit', 'respond', 'input', 'idempotency', 'serve'],
  app: ['admin', 'tenants', 'declare', 'check', 'data', 'assemble'],
  crud: [
    'declare',
    'options',
    'policy',
    'parameters',
    'read',
    'input',
    'write',
    'mount',
    'files',
    'live',
    'checks',
    'serve',
    'staff',
    'subjects',
    'inspect',
  ],
  'contrib/accounts': ['users', 'factors', 'sessions', 'mail', 'login', 'serve'],
  'contrib/audit': ['chain', 'record', 'serve'],
  'contrib/apikeys': ['key', 'rows', 'verify', 'manage', 'service', 'request'],
  'contrib/grants': ['declare', 'caller', 'rows', 'backends', 'grant', 'serve'],
  'contrib/jobs': ['declare', 'rows', 'start', 'running', 'queues', 'manage', 'admin', 'commands'],
  'contrib/mcp': ['tools', 'calls', 'serve'],
  'contrib/requests': ['log', 'quotas'],
  'contrib/tenants': ['declare', 'rows', 'manage', 'serve'],
  'contrib/uploads': ['declare', 'stores', 'rows', 'life', 'serve'],
  'contrib/webhooks': [
    'signing',
    'network',
    'publishing',
    'endpoints',
    'destinations',
    'delivery',
    'maintain',
    'resources',
    'receiving',
    'admin',
    'commands',
  ],
  admin: ['wire', 'staff', 'model', 'state', 'alerts', 'serve'],
  cli: ['terminal', 'load', 'dev', 'new', 'scaffold', 'commands'],
};

const KIT = 'packages/kit/src/';
const CONFIG_SERVER = 'packages/config-server/src/';

function ringOf(path: string): string | undefined {
  if (!path.startsWith(KIT)) return undefined;
  const first = path.slice(KIT.length).split('/')[0] ?? '';
  return first.endsWith('.ts') ? undefined : first;
}

function contribOf(path: string): string | undefined {
  return /^packages\/kit\/src\/contrib\/([^/]+)\//.exec(path)?.[1];
}

/** Core rings: everything that stands without crud, contrib and the outermost ring. */
const core = RINGS.slice(0, RINGS.indexOf('crud'));

/** Says why `from` must not import `to`; undefined when it may. */
export function forbidden(from: string, to: string): string | undefined {
  if (to.endsWith('/index.ts') && !from.endsWith('/index.ts'))
    return 'index.ts is for users of the package; import the file that has the name';
  if (from.startsWith(CONFIG_SERVER) && !to.startsWith(CONFIG_SERVER))
    return 'the configuration server imports nothing of this repository but itself';
  if (from.startsWith(KIT) && !to.startsWith(KIT)) return 'kit imports no other package by path';
  const source = ringOf(from);
  const target = ringOf(to);
  if (source === undefined || target === undefined || source === target) {
    const [a, b] = [contribOf(from), contribOf(to)];
    if (a !== undefined && b !== undefined && a !== b && b !== 'jobs')
      return `contrib/${a} meets contrib/${b} only through the core registries`;
    return undefined;
  }
  if (source === 'testing')
    return target === 'crud' || core.includes(target as (typeof core)[number]) ? undefined : 'testing stands on the core and crud alone';
  if (target === 'testing') return 'testing is for tests';
  const [inner, outer] = [RINGS.indexOf(target as (typeof RINGS)[number]), RINGS.indexOf(source as (typeof RINGS)[number])];
  if (inner < 0 || outer < 0) return `unknown folder ${inner < 0 ? target : source}: give it a place among the rings`;
  if (inner > outer) return `${source} is inside ${target}: imports go from the outer ring to the inner one`;
  return undefined;
}

/** Folders whose code must run without an HTTP framework; in contrib, everything but the controllers and the module's wiring. */
export function mustNotImportFastify(path: string): boolean {
  if (/^packages\/kit\/src\/(options|observe|errors|db|di|work|events|permissions)\//.test(path)) return true;
  return contribOf(path) !== undefined && !/\/(controller|module|admin)[^/]*\.ts$/.test(path);
}

/** Only the edges read the environment. */
export function mayReadEnvironment(path: string): boolean {
  return /\/(main|config)\.ts$/.test(path) || path.startsWith('packages/admin-ui/');
}
