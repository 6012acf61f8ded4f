import { Tally } from '../../../kit/src/contrib/requests/log/tally.ts';
import type { FinishedRequest } from '../../../kit/src/contrib/requests/log/finished-request.ts';
import { writeRequests } from '../../../kit/src/contrib/requests/log/store.ts';
import { uuidv7LowerBound } from '../../../kit/src/db/values/uuidv7.ts';
import { dice, NOW } from './fill.ts';
import type { Shop } from './shop.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** What ada's storefront calls, how often, and what goes wrong there. */
const OPERATIONS = [
  ['GET', '/v1/products', 200, null, 6],
  ['GET', '/v1/orders/:id', 200, null, 5],
  ['POST', '/v1/orders', 201, null, 3],
  ['GET', '/v1/orders/:id', 404, 'order_not_found', 0.3],
  ['POST', '/v1/orders', 422, 'validation_error', 0.25],
  ['GET', '/v1/customers', 403, 'insufficient_scope', 0.08],
] as const;

/** A week of requests of a customer, as the log has them: more by day than by night. Leaves the clock at NOW. */
export async function fillRequests({ db, clock }: Shop, owner: string): Promise<void> {
  const roll = dice(11);
  const keys = await db.query<{ id: string }>('select id from api_keys where owner_id = $1 order by id', [owner]);
  const all = OPERATIONS.reduce((sum, [, , , , weight]) => sum + weight, 0);
  for (let day = 7; day > 0; day -= 1) {
    const rows: FinishedRequest[] = [];
    const tally = new Tally(1000);
    for (let at = Date.parse(NOW) - day * DAY_MS; at < Date.parse(NOW) - (day - 1) * DAY_MS; at += HOUR_MS / 6) {
      const busy = Math.max(0.05, Math.sin(((new Date(at).getUTCHours() - 5) / 24) * 2 * Math.PI));
      for (let n = 0; n < Math.round(busy * 5 * (0.6 + roll())); n += 1) {
        clock.set(new Date(at + n * 1000));
        let left = roll() * all;
        const [method, route, status, errorCode] = OPERATIONS.find(([, , , , weight]) => (left -= weight) <= 0) ?? OPERATIONS[0];
        const row = requestOf({ method, route, status, errorCode, owner, roll, keyId: keys[roll() < 0.8 ? 0 : 1]?.id ?? null, clock });
        rows.push(row);
        tally.add(row, row.finishedAt.toISOString().slice(0, 10));
      }
    }
    await writeRequests(db, rows, tally.take());
  }
  clock.set(NOW);
}

type Made = Pick<FinishedRequest, 'method' | 'status' | 'errorCode' | 'owner' | 'keyId'> & {
  readonly route: string;
  readonly roll: () => number;
  readonly clock: Shop['clock'];
};

function requestOf({ roll, clock, status, route, ...facts }: Made): FinishedRequest {
  return {
    ...facts,
    // As of then: keys that are made now are never before the last one.
    id: `${uuidv7LowerBound(clock.now()).slice(0, 13)}-7000-8000-${Math.floor(roll() * 2 ** 48)
      .toString(16)
      .padStart(12, '0')}`,
    finishedAt: clock.now(),
    durationMs: Math.round((4 + 12 * roll() + (roll() < 0.03 ? 180 * roll() : 0)) * 10) / 10,
    route,
    path: route.replace(':id', String(1041 + Math.floor(roll() * 900))),
    status,
    failed: (status ?? 0) >= 400,
    aborted: false,
    tenant: '',
    scheme: 'api_key',
    requestId: `req-${Math.floor(roll() * 1e9).toString(36)}`,
    version: null,
    deprecated: false,
    via: 'http',
  };
}
