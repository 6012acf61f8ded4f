// What each contender promises its customers, asked from outside: over HTTP, at the receivers, and in its tables. The same for all of them.
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { verifySignature } from 'kit/contrib/webhooks';
import type { Blueprint, Product } from './product.ts';
import type { Receiver } from './receiver.ts';
import { shopClient, type Order, type ShopClient } from './shop-client.ts';

export interface Subject {
  readonly product: Product;
  readonly blueprint: Blueprint;
  readonly receiver: Receiver;
  readonly database: pg.Pool;
}

/** Null: it holds. Otherwise what was seen. */
export type Verdict = string | null;
type Question = (subject: Subject, shop: ShopClient) => Promise<Verdict>;

/** How long nothing may arrive before an event is taken for lost: longer than the pauses between attempts, and than leases of killed workers. */
const PATIENCE_MS = 90_000;

const questions: Readonly<Record<string, Question>> = {
  async 'refuses a request without a good key'({ product }, shop) {
    const answer = await shop.create({ key: `${product.accounts[0]!.key.slice(0, -4)}aaaa`, endpoints: [] }, { item: 'x', quantity: 1 });
    return answer.status === 401 ? null : `answered ${answer.status}`;
  },

  async 'refuses what does not fit, and stores nothing'({ product, database }, shop) {
    const item = randomUUID();
    for (const wrong of [{ item }, { item, quantity: 0 }, { item, quantity: 'many' }, { item, quantity: 1, price: 0 }]) {
      const { status } = await shop.create(product.accounts[0]!, wrong);
      if (status < 400 || status > 422) return `answered ${status} to ${JSON.stringify(wrong)}`;
    }
    return (await rowsOf(database, item)) === 0 ? null : 'stored an order';
  },

  async 'twelve requests with one idempotency key make one order'({ product, database, blueprint }, shop) {
    const [item, key] = [randomUUID(), randomUUID()];
    const answers = await Promise.all(Array.from({ length: 12 }, () => shop.create(product.accounts[0]!, { item, quantity: 2 }, key)));
    // A request that meets one under way may be told to come back.
    const again = await shop.create(product.accounts[0]!, { item, quantity: 2 }, key);
    const ids = new Set([...answers, again].filter(({ status }) => status === 201).map(({ body }) => body.id));
    const strange = answers.find(({ status }) => status !== 201 && status !== 409);
    if (strange !== undefined) return `answered ${strange.status}`;
    const [rows, entries] = [await rowsOf(database, item), await entriesOf(database, blueprint, [...ids][0]!, 'order.created')];
    return ids.size === 1 && rows === 1 && entries === 1 ? null : `${ids.size} ids, ${rows} rows, ${entries} audit entries`;
  },

  async 'one idempotency key with another body is refused'({ product }, shop) {
    const [item, key] = [randomUUID(), randomUUID()];
    await shop.create(product.accounts[0]!, { item, quantity: 2 }, key);
    const { status } = await shop.create(product.accounts[0]!, { item, quantity: 3 }, key);
    return status >= 400 && status < 500 ? null : `answered ${status}`;
  },

  async 'lists and changes only what is the caller’s'({ product }, shop) {
    const [mine, other] = [product.accounts[0]!, product.accounts[1]!];
    const { body: order } = await shop.create(mine, { item: randomUUID(), quantity: 1 });
    const { body: page } = await shop.list(other);
    const { status } = await shop.change(other, order.id, { quantity: 9 });
    const { body: own } = await shop.list(mine, '?status=open&limit=5');
    if (page.items.some(({ id }) => id === order.id)) return 'another caller sees it';
    if (status !== 404 && status !== 403) return `another caller’s change answered ${status}`;
    return own.items.length <= 5 && own.items[0]?.id === order.id && own.items[0].quantity === 1 ? null : 'the newest is not first';
  },

  async 'a change is in the audit log'({ product, database, blueprint }, shop) {
    const { body: order } = await shop.create(product.accounts[0]!, { item: randomUUID(), quantity: 1 });
    const { status, body } = await shop.change(product.accounts[0]!, order.id, { quantity: 7 });
    if (status !== 200 || body.quantity !== 7) return `answered ${status}`;
    const entries = await entriesOf(database, blueprint, order.id, 'order.updated');
    return entries === 1 ? null : `${entries} entries`;
  },

  async 'both endpoints receive each event, signed'({ product, receiver }, shop) {
    const account = product.accounts[0]!;
    const { body: order } = await shop.create(account, { item: randomUUID(), quantity: 1 });
    await shop.change(account, order.id, { quantity: 2 });
    for (const { url, secret } of account.endpoints) {
      for (const type of ['order.created', 'order.updated']) {
        const find = () => receiver.received.find((each) => url.endsWith(each.path) && isAbout(each.body, order, type));
        await receiver.until(() => find() !== undefined, PATIENCE_MS);
        const found = find();
        if (found === undefined) return `${type} did not arrive`;
        verifySignature(secret, found.headers, found.body);
      }
    }
    return null;
  },

  async 'an endpoint that is down receives the event later'({ product, receiver }, shop) {
    const account = product.accounts[2]!;
    const [path] = account.endpoints.map(({ url }) => new URL(url).pathname);
    receiver.refuse(path!, 1);
    const { body: order } = await shop.create(account, { item: randomUUID(), quantity: 1 });
    const isThere = () => receiver.received.some((each) => each.path === path && isAbout(each.body, order, 'order.created'));
    return (await receiver.until(isThere, PATIENCE_MS)) ? null : 'it never came';
  },
};

export async function askAll(subject: Subject): Promise<ReadonlyMap<string, Verdict>> {
  const shop = shopClient(subject.product);
  const verdicts = new Map<string, Verdict>();
  for (const [question, ask] of Object.entries(questions))
    verdicts.set(question, await ask(subject, shop).catch((error: unknown) => (error instanceof Error ? error.message : String(error))));
  await shop.close();
  return verdicts;
}

export function isAbout(body: string, order: Pick<Order, 'id'>, type: string): boolean {
  return body.includes(order.id) && (JSON.parse(body) as { type: string }).type === type;
}

async function rowsOf(database: pg.Pool, item: string): Promise<number> {
  const { rows } = await database.query<{ count: string }>('select count(*) from orders where item = $1', [item]);
  return Number(rows[0]?.count);
}

async function entriesOf(database: pg.Pool, { audit }: Blueprint, id: string, action: string): Promise<number> {
  const text = `select count(*) from (${audit}) entries where id::text = $1 and action = $2`;
  const { rows } = await database.query<{ count: string }>(text, [id, action]);
  return Number(rows[0]?.count);
}
