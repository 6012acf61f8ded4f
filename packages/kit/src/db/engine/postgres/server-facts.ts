import type { Session } from './session.ts';

/** What a connection finds out about the server it leads to, and about what is between. */
export interface ServerFacts {
  readonly version: string;
  /** A replica, which takes no changes. */
  readonly isStandby: boolean;
  /** Also where a primary was made read-only. */
  readonly isReadOnly: boolean;
  /** How far a replica is behind what it has received, or the furthest replica of a primary; null where there is none, or the role may not see it. */
  readonly replicaLagMs: number | null;
  /** Replicas that stream from this server, as far as the role may see them. */
  readonly replicas: number;
  /** Where transactions run: on the connection's own server process, or on one that a pooler chooses. */
  readonly pooler: 'none' | 'session' | 'transaction';
  /** `statement_timeout` of the session; 0: none. */
  readonly statementMsMax: number;
  /** Connections that ordinary roles can have, all processes together. */
  readonly connectionsMax: number;
}

const FACTS = `select current_setting('server_version') as version, pg_is_in_recovery() as standby,
  current_setting('transaction_read_only') = 'on' as read_only,
  cast(extract(epoch from current_setting('statement_timeout')::interval) * 1000 as integer) as statement_ms,
  current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer as connections,
  case when not pg_is_in_recovery() then (select max(extract(epoch from replay_lag)) * 1000 from pg_stat_replication)
    when pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() then 0
    else extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp()) * 1000 end::float8 as lag_ms,
  (select count(*) from pg_stat_replication)::integer as replicas`;

interface Row {
  readonly version: string;
  readonly standby: boolean;
  readonly read_only: boolean;
  readonly statement_ms: number;
  readonly connections: number;
  readonly lag_ms: number | null;
  readonly replicas: number;
}

/** A pooler without a free connection to the server lets a statement wait. */
const ANSWER_MS_MAX = 5_000;

/** Asks over two connections of its own, which are closed again. */
export async function readServerFacts(open: () => Promise<Session>): Promise<ServerFacts> {
  const sessions: Session[] = [];
  try {
    const first = await open();
    sessions.push(first);
    const { rows } = await first.within(ANSWER_MS_MAX, first.client.query<Row>(FACTS));
    const row = rows[0] as Row;
    return {
      version: row.version,
      isStandby: row.standby,
      isReadOnly: row.read_only,
      replicaLagMs: row.lag_ms,
      replicas: row.replicas,
      pooler: await poolerOf(first, async () => {
        const second = await open();
        sessions.push(second);
        return second;
      }),
      statementMsMax: row.statement_ms,
      connectionsMax: row.connections,
    };
  } finally {
    await Promise.all(sessions.map((session) => session.close()));
  }
}

/** In transaction mode, a connection that opens a transaction takes the server process on which another one ran. */
async function poolerOf(first: Session, open: () => Promise<Session>): Promise<ServerFacts['pooler']> {
  const before = await processOf(first);
  if (before === first.processId) return 'none';
  const second = await open();
  await second.within(ANSWER_MS_MAX, second.client.query('begin'));
  const taken = await processOf(second);
  // One connection to the server for all: the first would wait for the second.
  const after = taken === before ? undefined : await processOf(first);
  return after === before ? 'session' : 'transaction';
}

async function processOf(session: Session): Promise<number> {
  const { rows } = await session.within(ANSWER_MS_MAX, session.client.query<{ pid: number }>('select pg_backend_pid() as pid'));
  return (rows[0] as { pid: number }).pid;
}
