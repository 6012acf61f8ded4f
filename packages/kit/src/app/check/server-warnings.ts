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
