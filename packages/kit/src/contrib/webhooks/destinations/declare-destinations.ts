import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import { uuidv7 } from '../../../db/values/uuidv7.ts';
import { newSecret, secretColumns } from '../endpoints/endpoint-secret.ts';
import { changeEndpoint, insertEndpoint, lockEndpointsOf, type WebhookEndpoint } from '../endpoints/store.ts';
import { DESTINATION_SCHEME, destinationNameOf } from '../publishing/audience.ts';
import type { Webhooks } from '../webhooks.ts';
import type { Destination } from './destination.ts';

/**
 * Each destination is an endpoint of nobody: a row that publishing, claims, retries and the admin site treat as any other. The rows follow what the
 * application declares. A row whose destination is not declared (any more) stays with its deliveries, because another process, or the version
 * before this one, may declare it; an operator can disable or delete it in the admin site.
 */
export async function declareDestinations(webhooks: Webhooks): Promise<void> {
  const { database, settings, log } = webhooks;
  if (settings.destinations.length === 0) return;
  await database.transaction(async (tx) => {
    await lockEndpointsOf(tx, '', '');
    const rows = await tx.query<WebhookEndpoint>(`select * from webhook_endpoints where owner_id = '' and tenant_key = '' order by id`);
    const stored = new Map(rows.map((row) => [destinationNameOf(row), row]));
    for (const each of settings.destinations) await declareOne(tx, webhooks, each, stored.get(each.name));
    const declared = new Set(settings.destinations.map(({ name }) => name));
    for (const row of rows) {
      const name = destinationNameOf(row);
      if (name !== null && row.is_active && !declared.has(name))
        log.warn({ destination: name, endpoint_id: row.id }, 'a stored destination of events is not declared; its deliveries wait');
    }
  }, CONFLICT_RETRIES);
}

async function declareOne(
  tx: Db,
  webhooks: Webhooks,
  { name, events, schedule, rateLimit }: Destination,
  row: WebhookEndpoint | undefined,
) {
  const now = webhooks.clock.now();
  const columns = { events: [...events], schedule: schedule === null ? null : [...schedule], rate_limit: rateLimit };
  if (row === undefined) {
    await insertEndpoint(tx, {
      id: uuidv7(webhooks.clock),
      owner_id: '',
      tenant_key: '',
      url: `${DESTINATION_SCHEME}${name}`,
      description: '',
      // Nothing is signed with it; the column is not empty.
      ...secretColumns(webhooks, newSecret('v1')),
      headers: null,
      header_names: null,
      send_traceparent: false,
      created_at: now,
      ...columns,
    });
    return;
  }
  const before = { events: row.events, schedule: row.schedule, rate_limit: row.rate_limit };
  if (JSON.stringify(before) !== JSON.stringify(columns)) await changeEndpoint(tx, row.id, columns, now);
}

/** At the start of a worker: what would lose messages is said before the first one. Never rejects. */
export async function checkDestinations({ settings: { destinations, timeoutMs }, log }: Webhooks): Promise<void> {
  await Promise.all(
    destinations.map(async ({ name, check }) => {
      try {
        const fault = await withDeadline(check, timeoutMs);
        if (fault !== null) log.error({ destination: name }, `the destination "${name}" loses events: ${fault}`);
      } catch (error) {
        log.warn({ err: error, destination: name }, 'could not check a destination of events; its deliveries are retried');
      }
    }),
  );
}

async function withDeadline(check: Destination['check'], ms: number): Promise<string | null> {
  const over = new AbortController();
  const expired = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    over.abort();
    expired.reject(new Error('The destination did not respond in time.'));
  }, ms);
  try {
    return await Promise.race([check(over.signal), expired.promise]);
  } finally {
    clearTimeout(timer);
  }
}
