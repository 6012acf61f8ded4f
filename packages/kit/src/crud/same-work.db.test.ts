import { afterAll, beforeAll, expect, test } from 'vitest';
import { startDesk } from '../../test/crud/desk.ts';
import { type Person, type ShopApp } from '../../test/crud/shop.ts';
import { observeQueries } from '../db/engine/query-observer.ts';
import { describeDatabases } from '../testing/databases.ts';

const UNKNOWN = '01890000-0000-7000-8000-000000000000';

/**
 * A row that a caller may not see must not be told from one that does not exist by the time it takes either. Times are noise on a busy
 * machine; what they come from is not: both requests run the same statements, as many and as often. The times themselves are compared by
 * the long run.
 */
describeDatabases('a row of another and a row that is not there', (database) => {
  let desk: ShopApp;
  const foreign: { live: string; deleted: string; firm: string } = { live: '', deleted: '', firm: '' };
  beforeAll(async () => {
    desk = await startDesk({ database: database.db });
    foreign.live = (await desk.call('bob', 'POST', 'tickets', { sku: 'one' })).body.id as string;
    foreign.deleted = (await desk.call('bob', 'POST', 'tickets', { sku: 'two' })).body.id as string;
    foreign.firm = (await desk.call('cid', 'POST', 'firms', { name: 'South' })).body.id as string;
    await desk.call('bob', 'DELETE', `tickets/${foreign.deleted}`);
    // The first list of an app makes the key of its cursors.
    await desk.call('ann', 'GET', 'tickets');
  });
  afterAll(() => desk.close());

  const work = async (person: Person, method: string, url: string, body?: object) => {
    const texts: string[] = [];
    const answer = await observeQueries(
      ({ sql }) => void texts.push(sql),
      () => desk.call(person, method, url, body, { 'if-match': '*' }),
    );
    return { status: answer.status, code: answer.body?.code as string | undefined, texts };
  };

  const requests: readonly [string, string, (id: string) => string, ((id: string) => object)?][] = [
    ['GET', 'GET', (id) => `tickets/${id}`],
    ['GET expanded', 'GET', (id) => `tickets/${id}?expand=lines,firm`],
    ['PUT', 'PUT', (id) => `tickets/${id}`, () => ({ sku: 'x', lines: [] })],
    ['PATCH', 'PATCH', (id) => `tickets/${id}`, () => ({ title: 'x' })],
    ['DELETE', 'DELETE', (id) => `tickets/${id}`],
    ['restore', 'POST', (id) => `tickets/${id}/restore`],
    ['transition', 'POST', (id) => `tickets/${id}/pay`],
    ['transitions', 'GET', (id) => `tickets/${id}/transitions`],
    ['a route of its own', 'GET', (id) => `tickets/${id}/label`],
    ['bulk update', 'POST', () => 'tickets/bulk-update', (id) => ({ items: [{ id, title: 'x' }] })],
    ['bulk deletion', 'POST', () => 'tickets/bulk-delete', (id) => ({ ids: [id] })],
  ];

  test.each(requests)('cost the same statements: %s', async (_, method, url, body) => {
    const missing = await work('ann', method, url(UNKNOWN), body?.(UNKNOWN));
    expect(missing.status).toBe(404);
    for (const id of [foreign.live, foreign.deleted]) expect(await work('ann', method, url(id), body?.(id))).toEqual(missing);
  });

  test('cost the same statements as a reference, in a body and in a filter', async () => {
    const sent = (firm_id: string) => work('ann', 'POST', 'tickets', { sku: 'ref', firm_id });
    const missing = await sent(UNKNOWN);
    expect([missing.status, await sent(foreign.firm)]).toEqual([422, missing]);
    const named = (name: string) => work('ann', 'GET', `tickets?firm__name=${name}`);
    expect(await named('South')).toEqual(await named('Nowhere'));
  });
});
