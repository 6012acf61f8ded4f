import type { WebhookStats } from '../delivery/maintenance-store.ts';

const HELP: Readonly<Record<keyof WebhookStats, string>> = {
  pending: 'Deliveries that wait to be sent.',
  retrying: 'Pending deliveries with a failed attempt behind them.',
  succeeded: 'Stored deliveries that succeeded.',
  failed: 'Stored deliveries that failed permanently.',
  claimed: 'Deliveries that are being sent.',
  expired_claims: 'Deliveries held by a worker that did not come back in time.',
  endpoints: 'Webhook endpoints.',
  disabled_endpoints: 'Disabled webhook endpoints.',
  events_without_audience: 'Events that are not sent because they have no audience.',
  events_without_endpoint: 'Events, of the newest 10,000, for whose audience there is no endpoint.',
  lost_claims: 'Results that came after their lease had ended; each is a duplicate at its receiver.',
  oldest_pending_age_seconds: 'Age of the oldest pending delivery; absent when nothing is pending.',
};

/** The statistics in the text format of Prometheus. All are gauges: pruning makes them smaller. */
export function prometheusText(stats: WebhookStats, database: string): string {
  const label = database.replace(/[\\"\n]/g, '_');
  return (Object.keys(HELP) as (keyof WebhookStats)[])
    .flatMap((name) => {
      const value = stats[name];
      const metric = `kit_webhooks_${name}`;
      return value === null
        ? []
        : [`# HELP ${metric} ${HELP[name]}`, `# TYPE ${metric} gauge`, `${metric}{database="${label}"} ${String(value)}`];
    })
    .join('\n');
}
