/** A group of the sidebar: pages by name, or a folder with those that come first in it. */
export interface Group {
  readonly label: string;
  /** Names of files in docs/guide. A guide has its place in exactly one door: the build says which has none. */
  readonly guides?: readonly string[];
  /** Slugs below this prefix belong to the group. */
  readonly prefix?: string;
  /** Of a prefix: others follow by title. */
  readonly first?: readonly string[];
  readonly collapsed?: boolean;
}

/** Pages that stand above the groups. */
export const top: readonly string[] = ['tour'];

/** What a person came for: six doors, in the order in which a product grows. */
export const groups: readonly Group[] = [
  { label: 'Start', guides: ['first-api', 'install', 'zero-to-deployed', 'coming-from', 'typescript'] },
  {
    label: 'Build',
    guides: [
      'models-and-migrations',
      'crud',
      'live-lists',
      'own-operations',
      'tenancy',
      'sharing',
      'uploads',
      'jobs',
      'webhooks',
      'webhooks-publishing',
      'webhooks-operating',
      'webhooks-brokers',
      'encrypted-columns',
      'personal-data',
      'admin',
      'plugins',
      'crud-why-not',
    ],
  },
  { label: 'Connect', guides: ['api-keys', 'portal', 'tenant-machines', 'requests', 'browser-clients', 'webhooks-receiving', 'agents'] },
  {
    label: 'People',
    guides: ['logins', 'accounts', 'better-auth', 'identity-providers', 'keycloak-entra-auth0', 'clerk', 'supabase', 'auth-js'],
  },
  {
    label: 'Operate',
    guides: ['deployment', 'operate', 'upgrading', 'backup-and-failover', 'sqlite-to-postgresql', 'scale', 'publishing'],
  },
  {
    label: 'Configuration server',
    guides: [
      'config-server',
      'config-server-git',
      'config-server-encrypted',
      'config-server-mounted',
      'config-server-client',
      'config-server-types',
      'config-server-deploy',
    ],
  },
  {
    label: 'Reference',
    prefix: 'reference/',
    first: [
      'app',
      'http',
      'crud',
      'idempotency',
      'db',
      'auth',
      'permissions',
      'throttle',
      'middleware',
      'di',
      'modules',
      'openapi',
      'openapi-diff',
      'clients',
      'cli',
      'settings',
      'testing',
      'errors',
      'checks',
      'deprecations',
      'accounts',
      'apikeys',
      'audit',
      'grants',
      'jobs',
      'mcp',
      'metrics',
      'requests',
      'tracing',
      'tenants',
      'pages',
      'personal',
      'uploads',
      'webhooks',
      'admin',
      'config-server',
      'config-server-security',
    ],
  },
  { label: 'Decisions', prefix: 'decisions/', first: [''], collapsed: true },
  { label: 'Examples', prefix: 'examples/', first: [], collapsed: true },
  { label: 'Project', prefix: 'project/', first: ['comparison', 'benchmarks', 'architecture', 'contributing', 'changelog', 'security'] },
];
