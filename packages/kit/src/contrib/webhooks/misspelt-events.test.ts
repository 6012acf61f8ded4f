import { expect, test } from 'vitest';
import type { App } from '../../app/module.ts';
import { resource } from '../../crud/index.ts';
import { model, t } from '../../db/index.ts';
import { misspeltEvents } from './misspelt-events.ts';

const orders = model('orders', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), status: t.enum(['open', 'paid']) });
const policy = { owner: 'owner_id', state: 'status', transitions: { pay: { from: ['open'], to: 'paid' } } } as const;
const published = resource(orders, { ...policy, events: true });
const silent = resource(orders, policy);
const offered = (types: readonly string[], declared: object = published) =>
  misspeltEvents({ controllers: [], resources: [declared] } as unknown as App, 'Hooks', types).map(({ id, message, hint }) => [
    id,
    message,
    hint,
  ]);

test('W020: an event type that is one slip away from a published one is reported with the one that was meant', () => {
  const message = (type: string) => `Hooks: availableEvents has "${type}", which no resource publishes.`;
  for (const [type, meant] of [
    ['order.craeted', 'order.created'],
    ['oder.created', 'order.created'],
    ['order.deletedd', 'order.deleted'],
    ['order.psy', 'order.pay'],
  ] as const)
    expect(offered([type])).toEqual([['W020', message(type), `Did you mean "${meant}"?`]]);
});

test('published types, types of programs and other types are left alone', () => {
  expect(offered(['order.created', 'order.pay', 'order.paid', 'invoice.sent', 'order.*'])).toEqual([]);
  expect(offered(['order.craeted'], silent)).toEqual([]);
});
