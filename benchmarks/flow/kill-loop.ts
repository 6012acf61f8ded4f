// The API and the worker are killed again and again while customers order. What was acknowledged must be there once, with all that follows from it.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Subject } from './black-box.ts';
import { orderLoad, type Flow } from './order-load.ts';
import type { Received } from './receiver.ts';

/** Longer than the pauses between attempts, and than the leases of killed workers. */
const PATIENCE_MS = 90_000;

export interface Damage {
  readonly kills: number;
  readonly orders: number;
  /** Acknowledged, and no row. */
  readonly lostOrders: number;
  /** Two rows for one idempotency key. */
  readonly doubledOrders: number;
  /** Rows without exactly one entry of their creation. */
  readonly auditFaults: number;
  /** Events of rows and acknowledged changes that an endpoint never received. */
  readonly lostEvents: number;
  /** Creations that an endpoint received as two events: a receiver cannot know that they are one. */
  readonly doubledEvents: number;
  /** Attempts after the first, with the same id: what a receiver is told to expect. */
  readonly repeated: number;
  readonly strange: string;
}

export async function killLoop({ product, blueprint, receiver, database }: Subject, kills: number): Promise<Damage> {
  receiver.forget();
  let isOver = false;
  const load = orderLoad(product, { isOver: () => isOver, isStubborn: true });
  for (let kill = 0; kill < kills; kill += 1) {
    await sleep(400 + Math.random() * 800);
    const program = kill % 3 === 2 ? 'worker' : 'api';
    await product.kill(program);
    await product.start(program);
  }
  await sleep(500);
  isOver = true;
  const { flows, strange } = await load;
  const { rows } = await database.query<{ id: string; item: string }>('select id::text, item from orders');
  const { rows: entries } = await database.query<{ id: string; count: string }>(
    `select id::text, count(*) from (${blueprint.audit}) entries where action = 'order.created' group by 1`,
  );
  const entriesBy = new Map(entries.map(({ id, count }) => [id, Number(count)]));
  const rowsBy = Map.groupBy(rows, ({ item }) => item);
  const ours = flows.flatMap((flow) => (rowsBy.get(flow.item) ?? []).map((row) => ({ flow, row })));
  const expected = expectedEvents(ours);
  const events = eventIndex(receiver.received);
  const missing = (): number => expected.filter((key) => !events().has(key)).length;
  await receiver.until(() => missing() === 0, PATIENCE_MS);
  const arrived = events();
  return {
    kills,
    orders: ours.length,
    lostOrders: flows.filter(({ id, item }) => id !== undefined && !(rowsBy.get(item) ?? []).some((row) => row.id === id)).length,
    doubledOrders: flows.filter(({ item }) => (rowsBy.get(item)?.length ?? 0) > 1).length,
    auditFaults: ours.filter(({ row }) => entriesBy.get(row.id) !== 1).length,
    lostEvents: missing(),
    doubledEvents: expected.filter((key) => key.includes(' order.created ') && (arrived.get(key)?.ids.size ?? 0) > 1).length,
    repeated: [...arrived.values()].reduce((sum, { ids, times }) => sum + times - ids.size, 0),
    strange: [...strange].map(([what, times]) => `${times} × ${what}`).join(', '),
  };
}

/** `<order> <type> <endpoint's number>` */
function expectedEvents(orders: readonly { readonly flow: Flow; readonly row: { readonly id: string } }[]): string[] {
  return orders.flatMap(({ flow, row }) =>
    ['order.created', ...(flow.isChanged ? ['order.updated'] : [])].flatMap((type) => [`${row.id} ${type} 0`, `${row.id} ${type} 1`]),
  );
}

interface Arrivals {
  readonly ids: Set<string>;
  times: number;
}

/** Returns what has arrived so far; each arrival is read once. */
export function eventIndex(received: readonly Received[]): () => ReadonlyMap<string, Arrivals> {
  const index = new Map<string, Arrivals>();
  let read = 0;
  return () => {
    for (; read < received.length; read += 1) {
      const { path, id, body } = received[read]!;
      const { type, data } = JSON.parse(body) as { type: string; data: { id: string } };
      const key = `${data.id} ${type} ${path.split('/').at(-1)}`;
      const arrivals = index.get(key) ?? { ids: new Set(), times: 0 };
      arrivals.ids.add(id);
      arrivals.times += 1;
      index.set(key, arrivals);
    }
    return index;
  };
}
