// The load of order-flow: customers who place an order, look at their list and change the order, one after the other.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Product } from './product.ts';
import { shopClient } from './shop-client.ts';

const CUSTOMERS = 16;

export interface Flow {
  /** What the order is called: unique, and in the row. */
  readonly item: string;
  /** Known once it was acknowledged. */
  readonly id: string | undefined;
  readonly isChanged: boolean;
  /** When the order was acknowledged. */
  readonly at: number;
  /** Of POST, GET and PATCH. */
  readonly milliseconds: readonly number[];
}

export interface Load {
  readonly flows: readonly Flow[];
  /** Answers other than those that were meant. */
  readonly strange: ReadonlyMap<string, number>;
}

/** Runs until `isOver`; each customer ends the flow that is under way. `isStubborn` repeats what got no answer, with the same key. */
export async function orderLoad(product: Product, { isOver, isStubborn }: { isOver: () => boolean; isStubborn: boolean }): Promise<Load> {
  const shop = shopClient(product, CUSTOMERS);
  const flows: Flow[] = [];
  const strange = new Map<string, number>();
  const note = (what: string): void => void strange.set(what, (strange.get(what) ?? 0) + 1);
  const until = async <T>(status: number, ask: () => Promise<{ status: number; body: T }>): Promise<T | undefined> => {
    for (const deadline = Date.now() + 60_000; Date.now() < deadline; await sleep(50)) {
      const answer = await ask().catch(() => undefined);
      if (answer?.status === status) return answer.body;
      if (answer !== undefined) note(String(answer.status));
      if (!isStubborn) return undefined;
    }
    note('no answer within a minute');
    return undefined;
  };
  const customer = async (index: number): Promise<void> => {
    while (!isOver()) {
      const account = product.accounts[index % product.accounts.length]!;
      const [item, key] = [randomUUID(), randomUUID()];
      const [began, quantity] = [performance.now(), 1 + Math.floor(Math.random() * 9)];
      const order = await until(201, () => shop.create(account, { item, quantity }, key));
      const created = performance.now();
      const page = await until(200, () => shop.list(account));
      const listed = performance.now();
      const changed = order && (await until(200, () => shop.change(account, order.id, { quantity: quantity + 10 })));
      const milliseconds = [created - began, listed - created, performance.now() - listed];
      if (page === undefined && !isStubborn) note('no list');
      flows.push({ item, id: order?.id, isChanged: changed !== undefined, at: created, milliseconds });
    }
  };
  await Promise.all(Array.from({ length: CUSTOMERS }, (_, index) => customer(index)));
  await shop.close();
  return { flows, strange };
}
