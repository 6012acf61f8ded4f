import type { CoreCommand } from '../load/core-command.ts';

/** A command of the program itself, as its help lists it. */
export interface ListedCommand {
  readonly name: string;
  readonly summary: string;
  /** Not listed: a program starts it, not a person. */
  readonly hidden?: boolean;
  /** Only the command that runs is loaded, for help all of them: a server starts without generators and templates. */
  readonly load: () => Promise<CoreCommand>;
}

export const CORE_COMMANDS: readonly ListedCommand[] = [
  { name: 'new', summary: 'create a project', load: async () => (await import('./new.ts')).newCommand },
  {
    name: 'dev',
    summary: 'serve the app, and start it again when a file changes',
    load: async () => (await import('./dev.ts')).devCommand,
  },
  {
    name: 'dev-serve',
    summary: 'the process of the app under kit dev',
    hidden: true,
    load: async () => (await import('../dev/serve-command.ts')).devServeCommand,
  },
  { name: 'start', summary: 'serve the app until SIGINT or SIGTERM', load: async () => (await import('./start.ts')).startCommand },
  { name: 'migrate', summary: 'bring the databases up to date', load: async () => (await import('./migrate/migrate.ts')).migrateCommand },
  {
    name: 'backfill',
    summary: 'change the rows of large tables while the app runs: run, status, pause, resume',
    load: async () => (await import('./backfill.ts')).backfillCommand,
  },
  {
    name: 'database',
    summary: 'copy a SQLite database into PostgreSQL',
    load: async () => (await import('./database.ts')).databaseCommand,
  },
  {
    name: 'backup',
    summary: 'copy a SQLite database that is in use, and verify backups',
    load: async () => (await import('./backup.ts')).backupCommand,
  },
  {
    name: 'data-keys',
    summary: 'keys of encrypted columns: create them, count their values, rotate',
    load: async () => (await import('./encryption/data-keys.ts')).dataKeysCommand,
  },
  {
    name: 'person',
    summary: "a person's data: export, erase, cancel, hold, release, status",
    load: async () => (await import('./person.ts')).personCommand,
  },
  {
    name: 'retention',
    summary: 'delete or anonymise rows whose time is over: run, status',
    load: async () => (await import('./retention.ts')).retentionCommand,
  },
  {
    name: 'scaffold',
    summary: 'write a resource: model, migration, controller, admin list and tests',
    load: async () => (await import('./scaffold.ts')).scaffoldCommand,
  },
  {
    name: 'seed',
    summary: 'create the declared rows for development, or change them back',
    load: async () => (await import('./seed.ts')).seedCommand,
  },
  {
    name: 'check',
    summary: 'run all startup checks without serving',
    load: async () => (await import('./check.ts')).checkCommand,
  },
  {
    name: 'inspect',
    summary: 'list routes with permission, scope and throttles, or describe one resource',
    load: async () => (await import('./inspect.ts')).inspectCommand,
  },
  {
    name: 'doctor',
    summary: 'check the app, its settings and databases, and suggest fixes',
    load: async () => (await import('./doctor.ts')).doctorCommand,
  },
  {
    name: 'explain',
    summary: 'explain the code of an error or a check: what it means, and what to do',
    load: async () => (await import('./explain.ts')).explainCommand,
  },
  {
    name: 'shell',
    summary: 'run JavaScript with the app, its database and its resources',
    load: async () => (await import('./shell.ts')).shellCommand,
  },
  {
    name: 'openapi',
    summary: 'print the OpenAPI document of the app',
    load: async () => (await import('./openapi.ts')).openapiCommand,
  },
  {
    name: 'client',
    summary: 'generate a client of the app in TypeScript or Python',
    load: async () => (await import('./client.ts')).clientCommand,
  },
  {
    name: 'crud',
    summary: 'manage CRUD rows: permanently delete soft-deleted rows',
    load: async () => (await import('./crud.ts')).crudCommand,
  },
  {
    name: 'idempotency',
    summary: 'list idempotency keys, release a key, delete expired keys',
    load: async () => (await import('./idempotency.ts')).idempotencyCommand,
  },
];
