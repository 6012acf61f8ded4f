import { afterAll, beforeAll, expect, test } from 'vitest';
import { allowAny } from '../../permissions/built-ins.ts';
import { testApp, type TestApp } from '../../testing/test-app.ts';
import { Controller } from '../compile/controller.ts';
import { jsonSchema } from '../declare/json-schema.ts';
import { route } from '../declare/route.ts';
import { exchangeOf } from '../serve/serve-route.ts';
import { CallerCounts } from './caller-counts.ts';

const counts = new CallerCounts();

class Who extends Controller {
  who = route.get('/', { permission: allowAny, response: jsonSchema<object>({}) }, ({ request }) => {
    const exchange = exchangeOf(request);
    return { owner: exchange.statementOwner, isCounted: counts.add(exchange, 2) !== undefined };
  });
}

let kit: TestApp;
beforeAll(async () => {
  kit = await testApp({ mount: { '/v1': { '/who': Who } } });
});
afterAll(() => kit.close());

const from = async (remoteAddress: string) => (await kit.inject({ url: '/v1/who', remoteAddress })).json<object>();

test('anonymous callers are counted by their address, those of one IPv6 network together', async () => {
  const network = 'address 2001:db8:1:2::/64';
  expect(await from('2001:db8:1:2::1')).toEqual({ owner: network, isCounted: true });
  expect(await from('2001:db8:1:2:ffff:1:2:3')).toEqual({ owner: network, isCounted: true });
  expect(await from('2001:db8:1:2::3')).toEqual({ owner: network, isCounted: false });
  expect(await from('2001:db8:1:3::1')).toEqual({ owner: 'address 2001:db8:1:3::/64', isCounted: true });
  for (const isCounted of [true, true, false]) expect(await from('192.0.2.1')).toEqual({ owner: 'address 192.0.2.1', isCounted });
  expect(await from('::ffff:192.0.2.1')).toEqual({ owner: 'address 192.0.2.1', isCounted: false });
});
