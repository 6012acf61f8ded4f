import { inject } from 'vitest';

/** `KIT_TEST_PGBOUNCER=1`: PostgreSQL is behind PgBouncer in transaction mode. Notifications are lost there: tests of them are skipped with this reason. */
export const isBehindPooler = (): boolean => ((inject as (key: string) => unknown)('postgresPooler') ?? '') !== '';

export const NOTIFICATIONS_ARE_LOST = 'behind a pooler in transaction mode notifications are lost, and polling finds the work';

export const CONNECTIONS_ARE_KEPT =
  'a setting of the database holds for new connections to the server, and a pooler keeps those that it has';
