import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../provision/free-port.ts';
import { runScript } from './run-script.ts';
import { type OrdersProcess, startOrders } from './orders-process.ts';

/** What mypy knows about httpx stays: it takes ten times as long as the client. */
const MYPY_CACHE = join(import.meta.dirname, '../../node_modules/.cache/mypy');
const FIVE_MINUTES = 300_000;

/** The Python that has httpx and mypy: Debian's, also where another one is first on PATH. */
const PYTHON = ['/usr/bin/python3', 'python3'].find(
  (each) => spawnSync(each, ['-c', 'import httpx, mypy, sys; assert sys.version_info >= (3, 11)']).status === 0,
);

test('Python with httpx and mypy is here where it is required', () => {
  expect(PYTHON !== undefined || process.env['KIT_REQUIRE_PYTHON'] === undefined).toBe(true);
});

describe.skipIf(PYTHON === undefined)('the generated Python client', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kit-python-'));
  let orders: OrdersProcess;

  beforeAll(async () => {
    orders = await startOrders(join(folder, 'data'), await freePort(), folder);
  }, FIVE_MINUTES);
  afterAll(async () => {
    await orders?.kill();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Runs lines of Python with the client; what they print comes back. */
  const python = (script: string, environment: Record<string, string> = {}) => {
    writeFileSync(join(folder, 'main.py'), script);
    return runScript(PYTHON!, ['main.py'], folder, { URL: orders.url, KEY: orders.key, ...environment });
  };
  const HEAD = `import os\nimport api\nclient = api.Client(os.environ["URL"], api_key=os.environ["KEY"])\n`;

  test('is clean for mypy --strict, and a wrong filter, status or body is not', { timeout: FIVE_MINUTES }, async () => {
    const wrong = [
      'client.orders.list(statsu="paid")',
      'client.orders.list(status="lost")',
      'client.orders.create(body={"item": 1})',
      'client.orders.list().itms',
    ];
    writeFileSync(join(folder, 'wrong.py'), `import api\nclient = api.Client("")\n${wrong.join('\n')}\n`);
    const { stdout } = await runScript(
      PYTHON!,
      ['-m', 'mypy', '--strict', '--no-error-summary', '--cache-dir', MYPY_CACHE, 'api.py', 'wrong.py'],
      folder,
      {},
    );
    const faults = stdout.split('\n').filter((line) => line.includes(': error'));
    expect(faults.filter((line) => !line.startsWith('wrong.py:'))).toEqual([]);
    expect(new Set(faults.map((line) => Number(line.split(':')[1])))).toEqual(new Set([3, 4, 5, 6]));
  });

  test('reads, writes, pages, uses versions and raises an exception per code', async () => {
    const { stdout, stderr } = await python(`${HEAD}
for quantity in (1, 2, 3):
    client.orders.create(body={"item": f"shelf {quantity}", "quantity": quantity})
print([order.quantity for order in client.orders.all(item__contains="shelf", limit=1, ordering=["created_at"])])
order = client.orders.list(item__contains="shelf", limit=1).items[0]
first = client.orders.retrieve(id=order.id)
client.orders.partial_update(id=order.id, body={"quantity": 7}, call=api.CallOptions(if_match=first))
try:
    client.orders.partial_update(id=order.id, body={"quantity": 8}, call=api.CallOptions(if_match=first))
except api.PreconditionFailedProblem as problem:
    print(problem.status, problem.code)
listed = client.orders.list(item__contains="shelf", limit=1).items[0]
client.orders.partial_update(id=listed.id, body={"quantity": 8}, call=api.CallOptions(if_match=listed))
try:
    client.orders.partial_update(id=listed.id, body={"quantity": 9}, call=api.CallOptions(if_match=listed))
except api.PreconditionFailedProblem as problem:
    print("listed", problem.status)
try:
    client.orders.retrieve(id="00000000-0000-7000-8000-000000000000")
except api.NotFoundProblem as problem:
    print(problem.status, problem.code, problem.request_id is not None)
job = client.orders.export_all()
print([event.data.status for event in client.jobs.events(id=job.id)][-1])
`);
    expect([stderr, stdout.trim().split('\n')]).toEqual([
      '',
      ['[1, 2, 3]', '412 precondition_failed', 'listed 412', '404 not_found True', 'succeeded'],
    ]);
  });

  test('uploads a file and attaches it, also without blocking the event loop', async () => {
    writeFileSync(join(folder, 'invoice.pdf'), `%PDF-1.4 ${'x'.repeat(300_000)}`);
    const { stdout, stderr } = await python(`import asyncio
${HEAD}
with open("invoice.pdf", "rb") as file:
    uploaded = client.invoices.upload(file=file)
print(uploaded.state, uploaded.filename, uploaded.content_type, uploaded.size)
order = client.orders.create(body={"item": "with invoice", "quantity": 1})
print(client.orders.partial_update(id=order.id, body={"invoice_id": uploaded.id}).invoice_id == uploaded.id)
try:
    client.invoices.upload(file=b"x", filename="page.html")
except api.TypeNotAllowedProblem as problem:
    print(problem.code, problem.body["allowed_types"])

async def main() -> None:
    async with api.AsyncClient(os.environ["URL"], api_key=os.environ["KEY"]) as own:
        again = await own.invoices.upload(file=b"%PDF-1.4 short", filename="b.pdf", content_type="application/pdf")
        print(again.state, again.size)

asyncio.run(main())
`);
    expect([stderr, stdout.trim().split('\n')]).toEqual([
      '',
      ['complete invoice.pdf application/pdf 300009', 'True', "type_not_allowed ['application/pdf', 'image/*']", 'complete 14'],
    ]);
  });

  test('does the same without blocking the event loop', async () => {
    const { stdout, stderr } = await python(`import asyncio, os
import api

async def main() -> None:
    async with api.AsyncClient(os.environ["URL"], api_key=os.environ["KEY"]) as client:
        await asyncio.gather(*[client.orders.create(body={"item": "stool", "quantity": n}) for n in (1, 2, 3)])
        print(sorted([order.quantity async for order in client.orders.all(item__contains="stool", limit=2)]))
        job = await client.orders.export_all()
        print([event.data.status async for event in client.jobs.events(id=job.id)][-1])

asyncio.run(main())
`);
    expect([stderr, stdout.trim().split('\n')]).toEqual(['', ['[1, 2, 3]', 'succeeded']]);
  });

  test('repeats attempts with one idempotency key, obeys Retry-After, and repeats nothing that is not safe', async () => {
    const seen: { method: string; key: string | undefined }[] = [];
    const server = createServer((request, response) => {
      request.resume();
      seen.push({ method: `${request.method} ${request.url}`, key: request.headers['idempotency-key'] as string | undefined });
      if (seen.length === 1) return void request.socket.destroy();
      if (seen.length === 2) return void response.writeHead(503, { 'retry-after': '0' }).end('{"code":"unavailable"}');
      return void response.writeHead(seen.length === 3 ? 201 : 503, { 'content-type': 'application/json' }).end('{"id":"x"}');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { stdout, stderr } = await python(
      `${HEAD}
print(client.orders.create(body={"item": "desk", "quantity": 1}).id)
try:
    client.account.logout()
except api.Problem as problem:
    print(problem.code)
`,
      { URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}` },
    );
    server.close();
    expect([stderr, stdout.trim().split('\n')]).toEqual(['', ['x', 'http_503']]);
    expect(seen.map(({ method }) => method)).toEqual([...Array.from({ length: 3 }, () => 'POST /v1/orders'), 'POST /v1/account/logout']);
    expect([new Set(seen.slice(0, 3).map(({ key }) => key)).size, seen[0]?.key?.length]).toEqual([1, 36]);
  });
});
