import type { ServerFacts } from '../../db/engine/postgres/server-facts.ts';
import type { Fault } from '../../options/fault.ts';

/** A replica that is further behind shows people what they have changed already as it was. */
const LAG_MS_MAX = 10_000;
/** Processes that an app of one machine has: the server, a worker, and the next version during a restart. */
const PROCESSES = 3;

/** What the connections of this process are. */
export interface OwnConnections {
  readonly poolMax: number;
  /** 0: none. */
  readonly keepAliveMs: number;
}

/** Settings of a PostgreSQL server, of the role or of the connections that an app would miss in an incident. */
export function serverWarnings(name: string, facts: ServerFacts, { poolMax, keepAliveMs }: OwnConnections): Fault[] {
  const { isStandby, isReadOnly, replicaLagMs, statementMsMax, connectionsMax, pooler } = facts;
  const faults: Fault[] = [];
  const add = (id: string, message: string, hint: string): void => void faults.push({ id, message, hint });
  if (isReadOnly) {
    const why = isStandby ? 'is a replica' : 'is read-only';
    add(
      'W035',
      `The server of database "${name}" ${why} and does not take changes.`,
      'Set an address that leads to the primary, or several hosts with target_session_attrs=read-write.',
    );
  }
  if (replicaLagMs !== null && replicaLagMs > LAG_MS_MAX)
    add(
      'W036',
      `${isStandby ? 'The server' : 'A replica'} of database "${name}" is ${Math.round(replicaLagMs / 1000)} s behind.`,
      'Look for long transactions on the replica, and for its disk and network.',
    );
  if (statementMsMax === 0)
    add(
      'W034',
      `Statements of database "${name}" have no upper limit on the server.`,
      `Set one on the role: alter role app set statement_timeout = '15min'.${pooler === 'none' ? ' Or openDatabase(url, { statementMsMax: 900_000 }).' : ''}`,
    );
  if (pooler === 'none' && poolMax * PROCESSES > connectionsMax)
    add(
      'W037',
      `${PROCESSES} processes with ${poolMax} connections each need more than the ${connectionsMax} that the server of database "${name}" has.`,
      'Decrease poolMax, increase max_connections, or use a pooler.',
    );
  if (keepAliveMs === 0)
    add('W038', `Connections to database "${name}" have no TCP keep-alive.`, 'Remove keepalives=0 from the URL, or set keepAliveMs.');
  return faults;
}

/** In one line. */
export function describeServer(
  { version, isStandby, isReadOnly, pooler, replicas, replicaLagMs, connectionsMax, statementMsMax }: ServerFacts,
  { poolMax, keepAliveMs }: OwnConnections,
): string {
  const role = isStandby ? 'a replica' : isReadOnly ? 'read-only' : 'takes changes';
  const lag = replicaLagMs === null ? '' : `, ${Math.round(replicaLagMs)} ms behind`;
  return [
    `PostgreSQL ${version}, ${role}${isStandby ? lag : ''}`,
    ...(isStandby ? [] : [replicas === 0 ? 'no replica seen' : `${replicas} ${replicas === 1 ? 'replica' : 'replicas'}${lag}`]),
    pooler === 'none' ? 'no pooler' : `a pooler in ${pooler} mode`,
    `a pool of ${poolMax} of ${connectionsMax} connections`,
    keepAliveMs === 0 ? 'no keep-alive' : `keep-alive after ${keepAliveMs / 1000} s`,
    statementMsMax === 0 ? 'no limit for statements' : `statements limited to ${statementMsMax / 1000} s`,
  ].join(', ');
}

/** Checks of `kit doctor --database`. */
export const SERVER_CHECKS = {
  W034: {
    title: 'Statements have no upper limit on the server',
    explanation:
      'The session has no `statement_timeout`. Reads that can take long have their own deadline, but a statement of your own handlers that is not marked with `mayBeLong`, or of another program with the same role, can run for hours. Reported by `kit doctor --database`.',
    remedy:
      "Set a limit on the role, which also works behind poolers: `alter role app set statement_timeout = '15min'`. Without a pooler, `openDatabase(url, { statementMsMax })` does the same. Migrations are not limited by it; in your own long work, begin the transaction with `set local statement_timeout = 0`.",
  },
  W035: {
    title: 'The database does not take changes',
    explanation:
      'The connection leads to a replica, or to a server that was made read-only. Requests that write fail with `database_read_only`. Reported by `kit doctor --database`.',
    remedy: 'Set an address that leads to the primary, or several hosts: `postgres://a,b/shop?target_session_attrs=read-write`.',
  },
  W036: {
    title: 'A replica is far behind',
    explanation:
      'A replica is more than ten seconds behind the primary: what it shows is old, and a failover to it takes that much longer. Reported by `kit doctor --database`; for the replicas of a primary, the role needs `pg_monitor`.',
    remedy: 'Look for long transactions on the replica, and check its disk and network.',
  },
  W037: {
    title: 'The pools of a few processes need more connections than the server has',
    explanation:
      'Three processes, such as a server, a worker and the next version during a restart, would together open more connections than ordinary roles can have. Requests then fail with `database_unavailable` while the app restarts. Reported by `kit doctor --database`.',
    remedy: 'Decrease `poolMax` of `appDatabase` or `openDatabase`, increase `max_connections` of the server, or use a pooler.',
  },
  W038: {
    title: 'Database connections have no keep-alive',
    explanation:
      'TCP keep-alive is off, so a connection that waits for notifications does not notice that the host of the server vanished, and a firewall may drop idle connections without a word. Reported by `kit doctor --database`.',
    remedy: 'Remove `keepalives=0` from the URL, or set `keepAliveMs` of `appDatabase` or `openDatabase`.',
  },
} as const;
