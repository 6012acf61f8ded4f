import type { Db } from '../../../db/engine/db.ts';
import type { Counter, Histogram, MetricRegistry } from '../../../observe/metric-registry.ts';
import type { AttemptResult } from './delivery-outcome.ts';
import { firstIdFrom } from '../publishing/event-id.ts';
import { countUnreachable } from './unreachable-store.ts';
import { readWaiting, type WaitingDeliveries } from './waiting-store.ts';

const OUTCOMES = ['succeeded', 'rejected', 'timeout', 'connection', 'tls', 'blocked_address', 'payload', 'refused'] as const;
/** Requests to receivers may take as long as their deadline, and claims are faster than requests. */
const SEND_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30];
/** Several gauges show one reading, and several processes are scraped: the database is asked this often by each. */
const READING_MS_MAX = 5000;

/** Old events say nothing about the endpoints of today. */
const RECENT_MS = 3_600_000;

interface Reading extends WaitingDeliveries {
  /** Recent events that no endpoint can receive. */
  readonly unreachable: number;
}

async function read(db: Db): Promise<Reading> {
  const unreachable = await countUnreachable(db, firstIdFrom(new Date(db.clock.now().getTime() - RECENT_MS)));
  return { ...(await readWaiting(db)), unreachable };
}

/** What the workers of this process count. */
export interface WebhookMetrics {
  readonly attempts: Counter<'database' | 'outcome'>;
  readonly sendSeconds: Histogram<'database'>;
  readonly claimSeconds: Histogram<'database'>;
  readonly lostClaims: Counter<'database'>;
  readonly disabled: Counter<'database'>;
}

/** `databases` are those that webhooks are set up for, once they are open. */
export function webhookMetrics(registry: MetricRegistry, databases: () => readonly Db[]): WebhookMetrics {
  const database = { max: 20 };
  const readings = new WeakMap<Db, { readonly at: number; readonly reading: Promise<Reading> }>();
  const reading = (db: Db): Promise<Reading> => {
    const known = readings.get(db);
    if (known !== undefined && performance.now() - known.at < READING_MS_MAX) return known.reading;
    const next = read(db);
    readings.set(db, { at: performance.now(), reading: next });
    // A reading that failed is not worth keeping.
    next.catch(() => readings.delete(db));
    return next;
  };
  const gauge = (name: string, help: string, value: (waiting: Reading, db: Db) => number) =>
    registry.gauge({
      name,
      help,
      labels: { database },
      read: () => Promise.all(databases().map(async (db) => ({ labels: { database: db.using }, value: value(await reading(db), db) }))),
    });
  gauge('kit_webhooks_pending', 'Deliveries that wait to be sent; counted up to 100,000.', ({ pending }) => pending);
  gauge(
    'kit_webhooks_oldest_pending_age_seconds',
    'Age of the oldest pending delivery; 0 when nothing is pending.',
    ({ oldest }, { clock }) => secondsSince(oldest, clock.now()),
  );
  gauge(
    'kit_webhooks_oldest_due_age_seconds',
    'How long a delivery that is due waits to be sent; 0 when none is due. One that failed is due again at its next attempt.',
    ({ firstDue }, { clock }) => secondsSince(firstDue, clock.now()),
  );
  gauge('kit_webhooks_disabled_endpoints', 'Disabled webhook endpoints.', ({ disabledEndpoints }) => disabledEndpoints);
  gauge('kit_webhooks_failing_endpoints', 'Active endpoints whose last attempts failed.', ({ failingEndpoints }) => failingEndpoints);
  gauge(
    'kit_webhooks_recent_events_without_endpoint',
    'Events of the last hour, among the newest 10,000, for whose audience there is no endpoint: nobody can receive them.',
    ({ unreachable }) => unreachable,
  );
  return {
    attempts: registry.counter({
      name: 'kit_webhooks_attempts_total',
      help: 'Attempts to deliver a webhook, by outcome.',
      labels: { database, outcome: OUTCOMES },
    }),
    sendSeconds: registry.histogram({
      name: 'kit_webhooks_send_duration_seconds',
      help: 'Time one attempt took, from the DNS query to the last byte of the response.',
      labels: { database },
      buckets: SEND_SECONDS,
    }),
    claimSeconds: registry.histogram({
      name: 'kit_webhooks_claim_duration_seconds',
      help: 'Time it took to find and claim due deliveries.',
      labels: { database },
    }),
    lostClaims: registry.counter({
      name: 'kit_webhooks_lost_claims_total',
      help: 'Results that came after another worker had taken the delivery over.',
      labels: { database },
    }),
    disabled: registry.counter({
      name: 'kit_webhooks_endpoints_disabled_total',
      help: 'Endpoints that were disabled because they kept failing.',
      labels: { database },
    }),
  };
}

function secondsSince(moment: Date | null, now: Date): number {
  return moment === null ? 0 : Math.max(0, (now.getTime() - moment.getTime()) / 1000);
}

/** How an attempt ended, for the counter; undefined when nothing was tried. */
export function outcomeOf(result: AttemptResult | null): (typeof OUTCOMES)[number] | undefined {
  if (result === null) return undefined;
  if (result.kind === 'accepted') return 'succeeded';
  if (result.kind === 'response') return result.status >= 200 && result.status < 300 ? 'succeeded' : 'rejected';
  return result.kind === 'refused' ? 'refused' : result.reason;
}
