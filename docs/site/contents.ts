/** A group of the sidebar: the folder its pages come from, and the order of those that have one. Others follow by title. */
export interface Group {
  readonly label: string;
  /** Slugs below this prefix belong to the group. */
  readonly prefix: string;
  readonly first: readonly string[];
  readonly collapsed?: boolean;
}

/** Pages that stand above the groups. */
export const top: readonly string[] = ['tour'];

export const groups: readonly Group[] = [
  {
    label: 'Guides',
    prefix: 'guide/',
    first: [
      'first-api',
      'zero-to-deployed',
      'coming-from',
      'crud',
      'crud-why-not',
      'models-and-migrations',
      'accounts',
      'api-keys',
      'tenancy',
      'sharing',
      'uploads',
      'webhooks',
      'webhooks-publishing',
      'webhooks-operating',
      'webhooks-receiving',
      'jobs',
      'browser-clients',
      'admin',
      'plugins',
      'config-server',
      'config-server-git',
      'config-server-encrypted',
      'config-server-mounted',
      'config-server-client',
      'config-server-types',
      'config-server-deploy',
      'deployment',
      'upgrading',
      'backup-and-failover',
      'operate',
      'publishing',
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
      'metrics',
      'tracing',
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
