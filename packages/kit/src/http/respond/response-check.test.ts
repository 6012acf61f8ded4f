import { pino } from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createApp } from '../../app/assemble/create-app.ts';
import type { App } from '../../app/declare/module.ts';
import { metrics } from '../../contrib/metrics/module.ts';
import { t } from '../../db/declare/column.ts';
import { model } from '../../db/declare/model.ts';
import { allowAny } from '../../permissions/built-ins.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { Controller } from '../compile/controller.ts';
import { route } from '../declare/route.ts';

interface Leaf {
  readonly name: string;
  readonly children: readonly Leaf[];
}
const Leaf: z.ZodType<Leaf> = z.object({
  name: z.string(),
  get children() {
    return z.array(Leaf);
  },
});
const Order = z.object({ id: z.uuid(), total: z.number(), state: z.enum(['draft', 'paid']), note: z.string().nullable() });
const Page = z.object({ items: z.array(Order), count: z.int() });
const rows = model('things', { id: t.uuidv7().pk(), price: t.decimal(10, 2), at: t.timestamp(), secret: t.text().sensitive() });

const id = '01890000-0000-7000-8000-000000000000';
const valid = { id, total: 1, state: 'draft', note: null } as const;

let total: unknown = 1;
class Things extends Controller {
  page = route.get('/page', { response: Page, permission: allowAny }, () => ({
    items: [valid, { ...valid, total: '1' as unknown as number, note: undefined as unknown as null }],
    count: Number.NaN,
  }));
  valid = route.get('/valid', { response: Page, permission: allowAny }, () => ({ items: [valid], count: 1, extra: true }));
  row = route.get('/row', { response: rows.output, permission: allowAny }, () => ({ id, price: '1.50', at: new Date(0), secret: 'x' }));
  leaf = route.get('/leaf', { response: Leaf, permission: allowAny }, () => ({
    name: 'a',
    children: [{ name: 'b', children: [{ name: 7 as unknown as string, children: [] }] }],
  }));
  other = route.get('/other', { response: Order, responses: { 207: { response: Page } }, permission: allowAny }, ({ reply }) => {
    reply.code(207);
    return valid;
  });
  later = route.get('/later', { response: Order, permission: allowAny }, () => ({ ...valid, total: total as number }));
  events = route.stream('/events', { response: Order, permission: allowAny }, async function* () {
    yield { data: valid };
    yield { data: { ...valid, state: 'lost' as 'paid' } };
  });
}

let app: App | undefined;
afterEach(() => app?.close());

function serve(responseChecks?: 'error' | 'log' | 'off', lines: string[] = [], clock = fakeClock()) {
  app = createApp({
    database: 'sqlite::memory:',
    mount: { '/v1': { '/things': Things } },
    modules: [metrics({ path: '/metrics', permission: allowAny })],
    clock,
    log: pino({ level: 'error' }, { write: (line: string) => void lines.push(line) }),
    ...(responseChecks === undefined ? {} : { settings: { responseChecks } }),
  });
  return app;
}

describe('a response that does not match its schema', () => {
  test('is a 500 that names every path, in development and tests', async () => {
    const response = await serve().inject('/v1/things/page');
    expect([response.statusCode, response.json().code]).toEqual([500, 'invalid_response']);
    expect(
      response.json().errors.map(({ location, code }: { location: string[]; code: string }) => `${location.join('.')} ${code}`),
    ).toEqual(['response.items.1.note required', 'response.items.1.total invalid_type', 'response.count invalid_type']);
    expect(response.json().detail).toContain('The response of things_page does not match its schema: response.items.1.note is required');
  });

  test('is found in recursive schemas, in responses of other statuses and in events of streams', async () => {
    const served = serve();
    const places = async (path: string) => {
      const { statusCode, body } = await served.inject(`/v1/things/${path}`);
      return [statusCode, ...[...body.matchAll(/"location":\[([^\]]*)\]/g)].map(([, place]) => place)];
    };
    expect(await places('leaf')).toEqual([500, '"response","children","0","children","0","name"']);
    expect(await places('other')).toEqual([500, '"response","items"', '"response","count"']);
    expect(await places('events')).toEqual([200, '"response","state"']);
  });

  test('is sent, logged once a minute and counted in production', async () => {
    const lines: string[] = [];
    const clock = fakeClock();
    const served = serve('log', lines, clock);
    for (let count = 0; count < 3; count += 1) {
      const { statusCode, body } = await served.inject('/v1/things/page');
      expect([statusCode, JSON.parse(body).items.length]).toEqual([200, 2]);
    }
    clock.advance(61_000);
    await served.inject('/v1/things/page');
    const logged = lines.map((line) => JSON.parse(line) as { operation: string; times: number; faults: { location: string[] }[] });
    expect(logged.map(({ operation, times }) => [operation, times])).toEqual([
      ['things_page', 1],
      ['things_page', 3],
    ]);
    expect(logged[0]?.faults.map(({ location }) => location.join('.'))).toContain('response.items.1.total');
    const { body } = await served.inject('/metrics');
    expect(body).toContain('kit_invalid_responses_total{method="GET",route="/v1/things/page"} 4');
  });

  test('in production a fault that begins later is found in a sample, and then every response is checked', async () => {
    const served = serve('log');
    const invalid = async () => {
      const { body } = await served.inject('/metrics');
      return Number(/kit_invalid_responses_total\{[^}]*\/later"\} (\d+)/.exec(body)?.[1] ?? 0);
    };
    total = 1;
    for (let count = 0; count < 100; count += 1) await served.inject('/v1/things/later');
    expect(await invalid()).toBe(0);
    total = '1';
    let sent = 0;
    while ((await invalid()) === 0 && sent < 20) {
      await served.inject('/v1/things/later');
      sent += 1;
    }
    expect(sent).toBeGreaterThan(1);
    expect(sent).toBeLessThan(40);
    for (let count = 0; count < 5; count += 1) await served.inject('/v1/things/later');
    expect(await invalid()).toBe(6);
  });

  test('RESPONSE_CHECKS=off sends it as it is', async () => {
    const lines: string[] = [];
    expect((await serve('off', lines).inject('/v1/things/page')).statusCode).toBe(200);
    expect(lines).toEqual([]);
  });
});

test('a valid response passes, rows and undeclared members included', async () => {
  const served = serve();
  expect((await served.inject('/v1/things/valid')).json()).toEqual({ items: [valid], count: 1 });
  expect((await served.inject('/v1/things/row')).json()).toEqual({ id, price: '1.50', at: '1970-01-01T00:00:00.000Z' });
});
