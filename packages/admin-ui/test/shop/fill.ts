import { createApiKey, revokeApiKey, updateApiKey } from '../../../kit/src/contrib/apikeys/index.ts';
import { addUsage, type UsedHour } from '../../../kit/src/contrib/apikeys/rows/usage-store.ts';
import { accountsOf, deactivateUser } from '../../../kit/src/contrib/accounts/index.ts';
import { createEndpoint, deliverDue, publish, rotateSecret, type Transport } from '../../../kit/src/contrib/webhooks/index.ts';
import { insertMany } from '../../../kit/src/db/index.ts';
import { productTable } from './products.ts';
import type { Shop } from './shop.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** The moment at which the filled shop is looked at, and when it opened. */
export const NOW = '2026-03-12T14:32:00.000Z';
export const OPENED = new Date(Date.parse(NOW) - 8 * DAY_MS).toISOString();

/** The same sequence at every run. */
export function dice(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Receivers that behave as real ones do, without a network: one works, one stumbles, one broke two days ago, one is gone. */
export function receivers(shop: () => Shop): Transport {
  const roll = dice(7);
  const ok = { kind: 'response', status: 200, retryAfter: null, bodyExcerpt: '{"received":true}' } as const;
  const status = (code: number, bodyExcerpt: string) => ({ kind: 'response', status: code, retryAfter: null, bodyExcerpt }) as const;
  return {
    send({ url }) {
      const host = new URL(url).host;
      const age = Date.parse(NOW) - shop().clock.now().getTime();
      if (host.startsWith('warehouse') && age < 2 * DAY_MS)
        return Promise.resolve(
          roll() < 0.6
            ? status(500, '<h1>Internal Server Error</h1>\n<p>database "stock" is in recovery mode</p>')
            : ({ kind: 'failure', reason: 'timeout', error: 'No answer within 15 s.', detail: null, status: null } as const),
        );
      if (host.startsWith('legacy') && age < 4 * DAY_MS) return Promise.resolve(status(410, 'This integration was retired.'));
      if (host.startsWith('crm') && roll() < 0.06) return Promise.resolve(status(503, 'Service Unavailable'));
      return Promise.resolve(ok);
    },
    close: () => Promise.resolve(),
  };
}

const ITEMS = [
  'Yirgacheffe',
  'Sidamo Natural',
  'Huila',
  'Supremo',
  'Antigua',
  'Mandheling',
  'Sencha',
  'Darjeeling First Flush',
  'Earl Grey',
];

/** Eight days of a small shop: customers, keys, endpoints, events and what became of them. Leaves the clock at NOW. */
export async function fill(shop: Shop): Promise<void> {
  const { db, clock } = shop;
  const roll = dice(42);
  const people = await customers(shop);
  const [ada, grace, linus] = people;
  await db.transaction(async (tx) => {
    const add = (owner: string, url: string, events: string[], description: string) =>
      createEndpoint(tx, { owner, url, events, description });
    await add(ada.id, 'https://hooks.acme.example/orders', ['order.*'], 'Acme storefront');
    await add(grace.id, 'https://crm.northwind.example/webhooks/in', ['order.*', 'customer.*'], 'CRM sync');
    await add(linus.id, 'https://warehouse.contoso.example/events', ['order.paid', 'order.cancelled'], 'Warehouse picking');
    await add(ada.id, 'https://legacy.acme.example/notify', ['*'], 'Legacy notifier');
  });
  await keys(shop, people);
  await wares(shop, roll);

  let order = 1041;
  for (let at = Date.parse(OPENED) + HOUR_MS; at < Date.parse(NOW); at += 20 * MINUTE_MS) {
    clock.set(new Date(at));
    const hour = new Date(at).getUTCHours();
    const busy = 0.4 + 2.6 * Math.max(0, Math.sin(((hour - 5) / 24) * 2 * Math.PI));
    for (let n = 0; n < Math.round(busy * (0.5 + roll())); n += 1) {
      const owner = people[Math.floor(roll() * 3)] ?? ada;
      const type = (['order.placed', 'order.paid', 'order.shipped', 'order.cancelled', 'customer.updated'] as const)[
        Math.floor(roll() ** 1.6 * 5)
      ];
      order += 1;
      const data = {
        order: `BL-${order}`,
        item: ITEMS[Math.floor(roll() * ITEMS.length)],
        quantity: 1 + Math.floor(roll() * 4),
        total: (8 + roll() * 60).toFixed(2),
      };
      await db.transaction((tx) => publish(tx, type ?? 'order.placed', data, { owner: owner.id }));
    }
    await deliverDue(db, { name: 'worker-1' });
  }
  clock.set(new Date(Date.parse(NOW) - MINUTE_MS));
  await deliverDue(db, { name: 'worker-1' });
  clock.set(NOW);
  await later(shop, roll);
}

type Person = { readonly id: string; readonly username: string };

async function customers(shop: Shop): Promise<[Person, Person, Person, Person]> {
  const named = (username: string, at: string) => shop.newUser({ username, email: `${username}@${at}` });
  const people: [Person, Person, Person, Person] = [
    await named('ada', 'acme.example'),
    await named('grace', 'northwind.example'),
    await named('linus', 'contoso.example'),
    await named('margaret', 'fabrikam.example'),
  ];
  await shop.newUser({ username: 'noah', email: 'noah@beanleaf.example', is_staff: true });
  const left = await shop.newUser({ username: 'felix', email: 'felix@contoso.example' });
  const management = accountsOf(shop.app.db).management('setup');
  shop.clock.advance(HOUR_MS);
  await deactivateUser(shop.db, left.id, management);
  return people;
}

async function keys(shop: Shop, [ada, grace, linus, margaret]: readonly [Person, Person, Person, Person]): Promise<void> {
  const { db, clock } = shop;
  const inDays = (days: number): Date => new Date(Date.parse(NOW) + days * DAY_MS);
  const issue = async (user: Person, name: string, scopes: string[], more: { expiresAt?: Date; rateLimit?: string } = {}) => {
    clock.advance(7 * MINUTE_MS);
    return (await createApiKey(db, { user, name, scopes, ...more })).apiKey.id;
  };
  const used: Record<string, number> = {};
  used[await issue(ada, 'Storefront (production)', ['orders:*', 'products:read'], { rateLimit: '600/min' })] = 20_000;
  used[await issue(ada, 'Storefront (staging)', ['orders:read', 'products:read'])] = 26 * HOUR_MS;
  used[await issue(ada, 'Nightly export', ['orders:read'], { expiresAt: inDays(30) })] = 11 * HOUR_MS;
  used[await issue(grace, 'CRM sync', ['orders:read', 'customers:read', 'customers:write'], { rateLimit: '100/min' })] = 4 * MINUTE_MS;
  used[await issue(grace, 'Spreadsheet add-on', ['orders:read'], { expiresAt: inDays(4) })] = 2 * DAY_MS;
  used[await issue(linus, 'Warehouse scanner', ['orders:read', 'orders:write', 'stock:write'])] = 2 * MINUTE_MS;
  used[await issue(linus, 'GitHub Actions', ['products:*'], { expiresAt: inDays(60) })] = 3 * HOUR_MS;
  used[await issue(margaret, 'Loyalty app', ['customers:read', 'orders:read'], { rateLimit: '60/min' })] = 45 * MINUTE_MS;
  await issue(margaret, 'Loyalty app (new)', ['customers:read']);
  const trial = await issue(margaret, 'Trial', ['*']);
  const old = await issue(linus, 'Old scanner', ['orders:write']);
  const leaked = await issue(grace, 'Laptop', ['*']);
  clock.advance(HOUR_MS);
  await revokeApiKey(db, old, { reason: 'Replaced by Warehouse scanner' });
  await revokeApiKey(db, leaked, { reason: 'Found in a public repository' });
  await updateApiKey(db, trial, { scopes: ['orders:read'] });
  await db.query('update api_keys set expires_at = $2 where id = $1', [trial, inDays(-2)]);
  await addUsage(
    db,
    Object.keys(used).flatMap((keyId, index) => usageOf(keyId, 40 + index * 15)),
  );
  for (const [id, ago] of Object.entries(used)) {
    await db.query('update api_keys set last_used_at = $2 where id = $1', [id, new Date(Date.parse(NOW) - ago)]);
  }
}

/** Eight days of requests, more by day than by night. */
function usageOf(keyId: string, busiest: number): UsedHour[] {
  return Array.from({ length: 8 * 24 }, (_, index) => {
    const hourMs = Date.parse(OPENED) + index * HOUR_MS;
    const share = Math.max(0.05, Math.sin(((new Date(hourMs).getUTCHours() - 5) / 24) * 2 * Math.PI));
    return { keyId, hourMs: hourMs - (hourMs % HOUR_MS), requests: Math.round(busiest * share) };
  });
}

async function wares({ db }: Shop, roll: () => number): Promise<void> {
  await insertMany(
    db,
    productTable,
    ITEMS.map((name, index) => ({
      name,
      sku: `BL-${String(100 + index * 7)}`,
      price: (6 + roll() * 18).toFixed(2),
      stock: Math.floor(roll() * 240),
      is_listed: index !== 4,
      roast: index > 5 ? null : ((['light', 'medium', 'dark'] as const)[index % 3] ?? null),
      notes: index % 2 === 0 ? 'Floral, with a hint of bergamot.' : null,
    })),
  );
}

/** What the clock cannot make: durations as networks have them, an event from before audiences, work that waits. */
async function later({ db }: Shop, roll: () => number): Promise<void> {
  const attempts = await db.query<{ id: string; failure_reason: string | null }>('select id, failure_reason from webhook_attempts');
  for (const { id, failure_reason } of attempts) {
    const usual = 60 + 90 * roll() + (roll() < 0.05 ? 900 * roll() : 0);
    await db.query('update webhook_attempts set duration_ms = $2 where id = $1', [
      id,
      Math.round(failure_reason === 'timeout' ? 15_000 : usual),
    ]);
  }
  const [event] = await db.query<{ id: string }>("select id from webhook_events where type = 'customer.updated' order by id desc limit 1");
  await db.query("update webhook_events set audience = null, owner_id = '' where id = $1", [event?.id ?? '']);
  const [endpoint] = await db.query<{ id: string }>("select id from webhook_endpoints where description = 'CRM sync'");
  await db.transaction((tx) => rotateSecret(tx, endpoint?.id ?? ''));
}
