// What the servers of orders are asked, operation by operation.
import type { LoadRequest } from '../../harness/wrk.ts';
import { type DataSize, orderId } from './data.ts';

export const operations = ['retrieve', 'list', 'walk', 'expand', 'create', 'patch'] as const;
export type Operation = (typeof operations)[number];

const OWNERS_ASKED = 20;
const ROWS_ASKED = 200;
const PAGES_WALKED = 8;
const PATH = '/v1/orders';

const headersOf = (owner: number) => ({ authorization: `Bearer owner-${owner}` });
const jsonHeadersOf = (owner: number) => ({ ...headersOf(owner), 'content-type': 'application/json' });

/** The requests of an operation, spread over owners and rows. */
export async function requestsOf(operation: Operation, port: number, size: DataSize): Promise<LoadRequest[]> {
  const owners = Array.from({ length: Math.min(OWNERS_ASKED, size.owners) }, (_, index) => index);
  const rows = Array.from({ length: ROWS_ASKED }, (_, index) => ({
    owner: index % owners.length,
    id: orderId(size, index % owners.length, (index * 7) % size.ordersPerOwner),
  }));
  switch (operation) {
    case 'retrieve':
      return rows.map(({ owner, id }) => ({ method: 'GET', path: `${PATH}/${id}`, headers: headersOf(owner) }));
    case 'list':
      return Promise.all(owners.map((owner) => secondPage(port, owner, '?status=open&quantity__gte=2&limit=50')));
    case 'walk':
      return pagesOf(port, size, '?status=open&quantity__gte=2&limit=50');
    case 'expand':
      return Promise.all(owners.map((owner) => secondPage(port, owner, '?status=open&expand=customer,items&limit=50')));
    case 'create':
      return owners.map((owner) => ({
        method: 'POST',
        path: PATH,
        headers: jsonHeadersOf(owner),
        body: JSON.stringify({ item: `Lamp ${owner}`, quantity: 1 + owner, total: '19.90', note: 'Leave it at the door.' }),
      }));
    default:
      return rows.map(({ owner, id }, index) => ({
        method: 'PATCH',
        path: `${PATH}/${id}`,
        headers: jsonHeadersOf(owner),
        body: JSON.stringify({ quantity: 2 + (index % 50), note: `Changed ${index}` }),
      }));
  }
}

/** The second page: a place in the list to continue from, and no count. */
async function secondPage(port: number, owner: number, first: string): Promise<LoadRequest> {
  const { items, next } = await pageOf(port, owner, first);
  if (items !== 50 || next === null) throw new Error(`A page of ${items} rows instead of 50, next ${next}.`);
  return { method: 'GET', path: `${PATH}${next}`, headers: headersOf(owner) };
}

/** Pages that follow the first one, of every owner: more of them than any server remembers between two requests for the same. */
async function pagesOf(port: number, { owners }: DataSize, first: string): Promise<LoadRequest[]> {
  const requests: LoadRequest[] = [];
  for (let owner = 0; owner < owners; owner += 1) {
    let { next } = await pageOf(port, owner, first);
    for (let page = 1; page <= PAGES_WALKED && next !== null; page += 1) {
      requests.push({ method: 'GET', path: `${PATH}${next}`, headers: headersOf(owner) });
      ({ next } = await pageOf(port, owner, next));
    }
  }
  return requests;
}

export async function pageOf(
  port: number,
  owner: number,
  query: string,
): Promise<{ readonly items: number; readonly next: string | null }> {
  const response = await fetch(`http://127.0.0.1:${port}${PATH}${query}`, { headers: headersOf(owner) });
  const body = (await response.json()) as { readonly items?: readonly unknown[]; readonly next?: string | null };
  if (!response.ok || body.items === undefined) throw new Error(`${response.status} ${JSON.stringify(body).slice(0, 500)}`);
  return { items: body.items.length, next: body.next ?? null };
}
