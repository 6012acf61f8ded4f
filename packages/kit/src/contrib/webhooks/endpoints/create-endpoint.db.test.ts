import { expect, test } from 'vitest';
import { describeOutbox } from '../../../../test/webhooks/outbox.ts';
import type { KitError } from '../../../errors/kit-error.ts';
import { createEndpoint, type EndpointInput } from './create-endpoint.ts';
import { countEndpoints, findEndpoint } from './store.ts';
import { updateEndpoint, type EndpointEdit } from './update-endpoint.ts';

describeOutbox('createEndpoint and updateEndpoint', (outbox) => {
  const { owner, endpoint } = outbox;

  test('refuse what cannot be stored with a code, also from callers that TypeScript does not check', async () => {
    const mine = owner();
    const faults: readonly [object, string][] = [
      [{ owner: '' }, 'invalid_endpoint'],
      [{ owner: undefined }, 'invalid_endpoint'],
      [{ owner: 5 }, 'invalid_endpoint'],
      [{ owner: 'x'.repeat(256) }, 'invalid_endpoint'],
      [{ owner: 'a\0' }, 'value_not_storable'],
      [{ tenantKey: null }, 'invalid_endpoint'],
      [{ tenantKey: 'x'.repeat(256) }, 'invalid_endpoint'],
      [{ description: 5 }, 'invalid_endpoint'],
      [{ description: 'x'.repeat(201) }, 'invalid_endpoint'],
      [{ description: 'paid \u202egnp.exe' }, 'invalid_endpoint'],
      [{ schedule: [-1] }, 'invalid_endpoint'],
      [{ sendTraceparent: 'yes' }, 'invalid_endpoint'],
      [{ schedule: 'soon' }, 'invalid_endpoint'],
      [{ schedule: Array.from({ length: 51 }, () => 1) }, 'invalid_endpoint'],
      [{ events: 'order.paid' }, 'invalid_events'],
      [{ events: [] }, 'invalid_events'],
      [{ url: 5 }, 'url_not_allowed'],
    ];
    for (const [fields, code] of faults) {
      const input = { owner: mine, url: outbox.receiver.url('/'), events: ['*'], ...fields } as EndpointInput;
      await expect(outbox.db.transaction((tx) => createEndpoint(tx, input))).rejects.toMatchObject({ code, status: 422 });
    }
    expect(await countEndpoints(outbox.db, mine, '')).toBe(0);
    expect(await countEndpoints(outbox.db, '5', '')).toBe(0);
  });

  test('every fault is reported at once, at its field; faults of one kind keep its code', async () => {
    const target = await endpoint({ owner: owner() });
    const fields = { url: 'nonsense', events: ['order..paid', 'x'], description: 'x'.repeat(201), schedule: [-1], rateLimit: 'often' };
    const places = ['url', 'events.0', 'description', 'schedule', 'headers.host', 'rate_limit'];
    const faulty = { ...fields, headers: { host: 'x' } };
    for (const refused of [
      outbox.db.transaction((tx) => createEndpoint(tx, { owner: '', signature: 'v2' as 'v1', ...faulty })),
      outbox.db.transaction((tx) => updateEndpoint(tx, target, faulty)),
    ]) {
      const error = await refused.catch((thrown: unknown) => thrown as KitError);
      expect(error).toMatchObject({ code: 'validation_error', status: 422 });
      const named = (error as KitError).errors?.map(({ location }) => location.slice(1).join('.'));
      expect(named?.filter((place) => place !== 'owner' && place !== 'signature')).toEqual(places);
    }
    const same = outbox.db.transaction((tx) => updateEndpoint(tx, target, { schedule: [-1], rateLimit: 'often' }));
    await expect(same).rejects.toMatchObject({
      code: 'invalid_endpoint',
      errors: [{ code: 'invalid_schedule' }, { code: 'invalid_rate_limit' }],
    });
    expect(await findEndpoint(outbox.db, target.id)).toEqual(target);
  });

  test('a refused edit changes nothing', async () => {
    const target = await endpoint({ owner: owner() });
    for (const edit of [
      { description: 'x'.repeat(201), events: ['order.*'] },
      { description: null },
      { events: ['order.*'], url: 'nonsense' },
    ]) {
      const refused = outbox.db.transaction((tx) => updateEndpoint(tx, target, edit as EndpointEdit));
      await expect(refused).rejects.toMatchObject({ status: 422 });
    }
    expect(await findEndpoint(outbox.db, target.id)).toEqual(target);
  });
});
