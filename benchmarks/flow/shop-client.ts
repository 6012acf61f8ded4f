// A client of the shop, the same for every contender.
import { randomUUID } from 'node:crypto';
import { Pool } from 'undici';
import type { Account, Product } from './product.ts';

export interface Order {
  readonly id: string;
  readonly item: string;
  readonly quantity: number;
  readonly note: string | null;
  readonly status: string;
}

export interface Answer<T> {
  readonly status: number;
  readonly body: T;
}

export interface ShopClient {
  create(account: Account, input: unknown, key?: string): Promise<Answer<Order>>;
  list(account: Account, query?: string): Promise<Answer<{ items: Order[] }>>;
  change(account: Account, id: string, changes: unknown): Promise<Answer<Order>>;
  close(): Promise<void>;
}

export function shopClient({ port }: Pick<Product, 'port'>, connections = 16): ShopClient {
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections, pipelining: 1 });
  async function ask<T>(
    method: 'GET' | 'POST' | 'PATCH',
    path: string,
    account: Account,
    body?: unknown,
    key?: string,
  ): Promise<Answer<T>> {
    const headers = {
      authorization: `Bearer ${account.key}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(key !== undefined && { 'idempotency-key': key }),
    };
    const response = await pool.request({ method, path, headers, ...(body !== undefined && { body: JSON.stringify(body) }) });
    return { status: response.statusCode, body: (await response.body.json()) as T };
  }
  return {
    create: (account, input, key = randomUUID()) => ask('POST', '/v1/orders', account, input, key),
    list: (account, query = '?status=open&limit=20') => ask('GET', `/v1/orders${query}`, account),
    change: (account, id, changes) => ask('PATCH', `/v1/orders/${id}`, account, changes),
    close: () => pool.close(),
  };
}
