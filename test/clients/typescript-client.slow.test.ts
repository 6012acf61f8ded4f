import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../provision/free-port.ts';
import { type OrdersProcess, startOrders } from './orders-process.ts';

const root = join(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'kit-client-'));
const file = join(folder, 'api.ts');
const GZIP_BYTES_MAX = 12_000;
// The goal is 130 kB for 64 operations, 2,030 bytes each; decision 079 says what the rest would cost.
const BYTES_OF_OPERATION_MAX = 2_450;
const FIVE_MINUTES = 300_000;

// oxlint-disable-next-line typescript/no-explicit-any -- the generated client is not known to the compiler; `types.ts` below is compiled with it
type Generated = any;
let api: Generated;
let orders: OrdersProcess;

beforeAll(async () => {
  orders = await startOrders(join(folder, 'data'), await freePort(), folder);
  api = await import(file);
}, FIVE_MINUTES);
afterAll(async () => {
  await orders?.kill();
  rmSync(folder, { recursive: true, force: true });
});

const client = (options: object = {}): Generated => api.createClient({ baseUrl: orders.url, apiKey: orders.key, ...options });

describe('the generated file', () => {
  test(
    'is strict TypeScript whose results narrow by fields, expand and code, and which knows every filter',
    { timeout: FIVE_MINUTES },
    () => {
      writeFileSync(
        join(folder, 'types.ts'),
        `import { createClient, isProblem, type Order } from './api.ts';
type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <_T extends true>(): void => undefined;
const client = createClient();
export async function check(): Promise<void> {
  const whole = await client.orders.list({ status: 'paid', status__in: ['open', 'paid'] });
  same<Equal<(typeof whole.items)[number]['total'], string>>();
  // @ts-expect-error A relation is there only when it was asked for.
  void whole.items[0]?.invoice;
  const some = await client.orders.list({ fields: ['id', 'total'] });
  same<Equal<keyof (typeof some.items)[number], 'id' | 'total'>>();
  // @ts-expect-error Not among the fields.
  void some.items[0]?.item;
  const expanded = await client.orders.retrieve({ id: 'x', expand: ['invoice'] });
  same<Equal<typeof expanded.invoice, NonNullable<Order['invoice']> | null>>();
  void expanded.total.length;
  for await (const order of client.orders.all({ fields: ['status'] })) same<Equal<typeof order.status, 'open' | 'paid' | 'cancelled'>>();
  // @ts-expect-error There is no such filter.
  await client.orders.list({ statsu: 'paid' });
  // @ts-expect-error There is no such status.
  await client.orders.list({ status: 'lost' });
  // @ts-expect-error There is no such field.
  await client.orders.list({ fields: ['totl'] });
  // @ts-expect-error There is no such field of the relation.
  await client.orders.list({ fields: ['invoice.nothing'] });
  const found = await client.orders.query({ body: { fields: ['id', 'invoice.filename'] } });
  same<Equal<keyof (typeof found.items)[number], 'id' | 'invoice'>>();
  void found.items[0]?.invoice?.filename;
  // @ts-expect-error Not among the fields of the relation.
  void found.items[0]?.invoice?.size;
  for await (const order of client.orders.queryAll({ body: { fields: ['total'] } })) void order.total.length;
  const names: ('id' | 'total')[] = ['id'];
  const perhaps = await client.orders.list({ fields: names });
  same<Equal<(typeof perhaps.items)[number]['total'], string | undefined>>();
  // @ts-expect-error The body is required.
  await client.orders.create({});
  try {
    await client.orders.create({ body: { item: 'chair', quantity: 1 } });
  } catch (error) {
    if (isProblem(error, client.orders.create)) {
      if (error.code === 'throttled') same<Equal<typeof error.body.policy, string | undefined>>();
      // @ts-expect-error Not a code of this operation.
      if (error.code === 'order_closed') return;
    }
  }
  for await (const { data } of client.jobs.events({ id: 'x' })) same<Equal<typeof data.status extends string ? true : false, true>>();
}
`,
      );
      const options =
        '--noEmit --ignoreConfig --allowImportingTsExtensions --strict --exactOptionalPropertyTypes --noUncheckedIndexedAccess --noUnusedLocals --isolatedDeclarations --declaration --erasableSyntaxOnly --verbatimModuleSyntax --target es2023 --module esnext --moduleResolution bundler';
      // In a browser, and in a project of `kit new`, which has the types of Node only.
      const typeRoots = join(root, 'node_modules/@types');
      for (const types of ['--lib es2023,dom,dom.iterable,dom.asynciterable', `--lib es2023 --types node --typeRoots ${typeRoots}`]) {
        const files = ['types.ts', 'dated.ts'].map((file) => join(folder, file));
        const tsc = join(root, 'node_modules/typescript/bin/tsc');
        const checked = spawnSync(process.execPath, [tsc, ...`${options} ${types}`.split(' '), ...files], { encoding: 'utf8' });
        expect(checked.stdout).toBe('');
      }
    },
  );

  test('has at most 12 kB, packed, with every operation; a bundle of one call has only that call', async () => {
    const bundled = async (name: string, text: string): Promise<string> => {
      writeFileSync(join(folder, `${name}.ts`), text);
      const { output } = await rolldown({ input: join(folder, `${name}.ts`), platform: 'browser' }).then((bundle) =>
        bundle.generate({ format: 'esm', minify: true }),
      );
      return output[0].code;
    };
    const whole = await bundled('whole', "export { createClient, isProblem, etagOf } from './api.ts';");
    expect(gzipSync(whole).length).toBeLessThanOrEqual(GZIP_BYTES_MAX);
    for (const part of ['/v1/webhooks', 'XMLHttpRequest', 'TextDecoderStream']) expect(whole).toContain(part);
    const one = await bundled(
      'one',
      "import { connect, orderRetrieve } from './api.ts'; export const read = (id: string) => orderRetrieve(connect(), { id });",
    );
    expect(one).toContain('/v1/orders/{id}');
    for (const part of ['/v1/webhooks', '/v1/orders/query', 'XMLHttpRequest', 'TextDecoderStream', 'crypto.subtle', '.items'])
      expect(one).not.toContain(part);
    expect(gzipSync(one).length).toBeLessThan(gzipSync(whole).length / 2);
  });

  test('the document it is made from has at most 2.45 kB for each operation as it is served', async () => {
    const text = await (await fetch(`${orders.url}/openapi.json`, { headers: { 'accept-encoding': 'identity' } })).text();
    const document = JSON.parse(text) as { paths: Record<string, object> };
    const operations = Object.values(document.paths).flatMap((path) => Object.keys(path).filter((member) => member !== 'parameters'));
    expect(operations.length).toBeGreaterThan(60);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(BYTES_OF_OPERATION_MAX * operations.length);
    expect(text).toBe(JSON.stringify(document));
  });
});

describe('against the running example', () => {
  test('reads, writes, pages and reports problems', async () => {
    const { orders: own } = client();
    for (const quantity of [1, 2, 3]) await own.create({ body: { item: `table ${quantity}`, quantity } });
    const page = await own.list({ item__contains: 'table', limit: 2, ordering: ['created_at'] });
    expect([page.items.length, typeof page.next]).toEqual([2, 'string']);
    const quantities = [];
    for await (const order of own.all({ item__contains: 'table', limit: 1, ordering: ['created_at'], fields: ['quantity'] }))
      quantities.push(order.quantity);
    expect(quantities).toEqual([1, 2, 3]);
    expect((await own.query({ body: { where: { item: { contains: 'table 3' } } } })).items).toHaveLength(1);
    const missing = await own.retrieve({ id: crypto.randomUUID() }).catch((error: unknown) => error);
    expect(api.isProblem(missing, own.retrieve)).toBe(true);
    expect(missing).toMatchObject({ name: 'Problem', status: 404, code: 'not_found', requestId: expect.any(String) });
    const wrong = await own.create({ body: { item: '', quantity: 0 } }).catch((error: unknown) => error);
    expect(wrong).toMatchObject({ status: 422, code: 'validation_error' });
    expect(wrong.errors.map(({ location }: Generated) => location.join('.'))).toEqual(['body.item', 'body.quantity']);
    expect(
      await client({ apiKey: 'wrong' })
        .orders.list()
        .catch(({ code }: Generated) => code),
    ).toBe('invalid_api_key');
  });

  test('sends If-Match from the fetched object, so that a change in between is noticed', async () => {
    const { orders: own } = client();
    const { id } = await own.create({ body: { item: 'lamp', quantity: 1 } });
    const first = await own.retrieve({ id });
    expect(api.etagOf(first)).toEqual(expect.any(String));
    const second = await own.partialUpdate({ id, body: { quantity: 2 } }, { ifMatch: first });
    expect(second.quantity).toBe(2);
    expect(await own.partialUpdate({ id, body: { quantity: 3 } }, { ifMatch: first }).catch(({ code }: Generated) => code)).toBe(
      'precondition_failed',
    );
    await own.partialUpdate({ id, body: { quantity: 3 } }, { ifMatch: second });
    await expect(own.partialUpdate({ id, body: { quantity: 3 } }, { ifMatch: { id } })).rejects.toThrow('was not fetched with this client');
    // Items of a page and of an iteration have their version, too, unless `fields` leaves it out.
    const listed = (await own.list({ limit: 100 })).items.find((each: Generated) => each.id === id)!;
    await own.partialUpdate({ id, body: { quantity: 4 } }, { ifMatch: listed });
    expect(await own.partialUpdate({ id, body: { quantity: 5 } }, { ifMatch: listed }).catch(({ code }: Generated) => code)).toBe(
      'precondition_failed',
    );
    for await (const each of own.all({ limit: 1, fields: ['id', 'version'] }))
      if (each.id === id) await own.partialUpdate({ id, body: { quantity: 6 } }, { ifMatch: each });
    const [bare] = (await own.list({ limit: 1, fields: ['id'] })).items;
    await expect(own.partialUpdate({ id: bare!.id, body: { quantity: 7 } }, { ifMatch: bare! })).rejects.toThrow('has no ETag');
  });

  test('follows a stream of events to its end', { timeout: 60_000 }, async () => {
    const { orders: own, jobs } = client();
    const { id } = await own.exportAll();
    const statuses: string[] = [];
    for await (const { data } of jobs.events({ id })) statuses.push(data.status);
    expect(statuses.at(-1)).toBe('succeeded');
  });

  test('uploads a file with progress, and attaches it', async () => {
    const { invoices, orders: own } = client();
    const seen: { sent: number; total: number }[] = [];
    const file = new File([`%PDF-1.4 ${'x'.repeat(300_000)}`], 'invoice.pdf', { type: 'application/pdf' });
    const uploaded = await invoices.upload({ file }, { onProgress: (progress: { sent: number; total: number }) => seen.push(progress) });
    expect(uploaded).toMatchObject({ state: 'complete', filename: 'invoice.pdf', size: file.size });
    expect([seen.length > 1, seen.at(-1)]).toEqual([true, { sent: file.size, total: file.size }]);
    const { id } = await own.create({ body: { item: 'with invoice', quantity: 1 } });
    expect((await own.partialUpdate({ id, body: { invoice_id: uploaded.id } })).invoice_id).toBe(uploaded.id);
    const refused = await invoices.upload({ file: new Blob(['x'], { type: 'text/html' }) }).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: 'type_not_allowed', body: { allowed_types: ['application/pdf', 'image/*'] } });
  });

  test('a call ends when it is aborted or takes too long', async () => {
    const slow = (_url: string, { signal }: RequestInit) =>
      new Promise<Response>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason as Error)));
    const stop = new AbortController();
    const aborted = client({ fetch: slow }).orders.list({}, { signal: stop.signal });
    stop.abort(new Error('enough'));
    await expect(aborted).rejects.toThrow('enough');
    await expect(client({ fetch: slow, timeoutMs: 20, retries: 1 }).orders.list()).rejects.toMatchObject({ name: 'TimeoutError' });
  });
});

describe('attempts', () => {
  const answering = (...answers: (() => Response)[]) => {
    const seen: RequestInit[] = [];
    const fetch = (_url: string, init: RequestInit) => {
      seen.push(init);
      return Promise.resolve().then(answers[Math.min(seen.length, answers.length) - 1]);
    };
    return { seen, fetch };
  };
  const broken = () => {
    throw new TypeError('fetch failed');
  };
  const busy = () => Response.json({ code: 'throttled' }, { status: 429, headers: { 'retry-after': '0' } });
  const late = () => Response.json({ code: 'unavailable' }, { status: 503, headers: { 'retry-after': '3600' } });
  const fine = () => Response.json({ items: [], count: 0, next: null });
  const body = { item: 'chair', quantity: 1 };

  test('are repeated after network faults and where the server asks for it; all of them have one idempotency key', async () => {
    const { seen, fetch } = answering(broken, busy, fine);
    await client({ fetch }).orders.create({ body });
    const keys = seen.map(({ headers }) => new Headers(headers).get('idempotency-key'));
    expect([seen.length, new Set(keys).size, keys[0]]).toEqual([3, 1, expect.stringMatching(/^[\da-f-]{36}$/)]);
  });

  test('are not repeated where that is not safe, where the server asks for a long pause, and after a refusal', async () => {
    const account = answering(broken, fine);
    await expect(client({ fetch: account.fetch }).account.logout()).rejects.toThrow('fetch failed');
    const pausing = answering(late, fine);
    await expect(client({ fetch: pausing.fetch }).orders.list()).rejects.toMatchObject({ status: 503, retryAfterMs: 3_600_000 });
    const refused = answering(() => Response.json({ code: 'permission_denied' }, { status: 403 }), fine);
    await expect(client({ fetch: refused.fetch }).orders.list()).rejects.toMatchObject({ code: 'permission_denied' });
    expect([account.seen.length, pausing.seen.length, refused.seen.length]).toEqual([1, 1, 1]);
  });
});
