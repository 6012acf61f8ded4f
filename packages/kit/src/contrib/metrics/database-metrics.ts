import type { Database } from '../../db/engine/db.ts';
import type { MetricRegistry } from '../../observe/metric-registry.ts';

const OPERATIONS = ['select', 'insert', 'update', 'delete'] as const;
const CALLERS = ['key', 'user', 'address', 'none'] as const;
/** Statements are faster than requests. */
const SECONDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Declares the metrics of databases; the returned function begins to watch them once they are open, and returns how to stop. */
export function databaseMetrics(registry: MetricRegistry, databases: () => Readonly<Record<string, Database>>): () => () => void {
  const database = { max: 20 };
  const duration = registry.histogram({
    name: 'db_client_operation_duration_seconds',
    help: 'Time a statement took, waiting for a connection included.',
    labels: { database, operation: OPERATIONS, outcome: ['success', 'failure'] },
    buckets: SECONDS,
  });
  const retries = registry.counter({
    name: 'db_client_transaction_retries_total',
    help: 'Transactions that were run again after a serialization failure or a deadlock.',
    labels: { database },
  });
  const poolGauge = (name: 'max' | 'used' | 'waiting', help: string) =>
    registry.gauge({
      name: `db_client_connections_${name}`,
      help,
      labels: { database },
      read: () => Object.entries(databases()).map(([alias, { pool }]) => ({ labels: { database: alias }, value: pool[name] })),
    });
  poolGauge('max', 'Connections the pool may open; on SQLite the one that writes.');
  poolGauge('used', 'Connections in use.');
  poolGauge('waiting', 'Statements and transactions that wait for a connection.');
  const ended = registry.counter({
    name: 'db_client_statements_ended_total',
    help: 'Reads of requests that ended early, by the kind of caller.',
    labels: { database, outcome: ['timed_out', 'cancelled', 'rejected'], caller: CALLERS },
  });
  registry.gauge({
    name: 'db_client_statements_waiting',
    help: 'Reads that wait for the share of their caller, by the kind of caller.',
    labels: { database, caller: CALLERS },
    read: () =>
      Object.entries(databases()).flatMap(([alias, { pool }]) =>
        CALLERS.map((caller) => ({ labels: { database: alias, caller }, value: pool.waitingForShare?.[caller] ?? 0 })),
      ),
  });
  return () => {
    const stops = Object.entries(databases()).map(([alias, each]) => {
      retries.add({ database: alias }, 0);
      return each.observe({
        onQuery: ({ sql, durationMs, failed }) =>
          duration.observe({ database: alias, operation: operationOf(sql), outcome: failed ? 'failure' : 'success' }, durationMs / 1000),
        onRetry: () => retries.add({ database: alias }),
        onStatementEnd: (outcome, caller) => ended.add({ database: alias, outcome, caller }),
      });
    });
    return () => {
      for (const stop of stops) stop();
    };
  };
}

/** The verb of a statement: of what follows the tables a `with` defines, the one that writes. */
export function operationOf(sql: string): string {
  const verb = /^[\s(]*(\w+)/.exec(sql)?.[1]?.toLowerCase() ?? '';
  if (verb !== 'with') return verb;
  return /\b(insert|update|delete)\b/i.exec(sql)?.[1]?.toLowerCase() ?? 'select';
}
