import { expect, test } from 'vitest';
import { z } from 'zod';
import { createApp } from '../../app/assemble/create-app.ts';
import type { App } from '../../app/declare/module.ts';
import { resource } from '../../crud/index.ts';
import { model, t } from '../../db/index.ts';
import { accounts } from '../accounts/index.ts';
import { eventType, WebhookEndpointController, webhooks } from './index.ts';
import { misspeltEvents } from './misspelt-events.ts';

const orders = model('orders', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), status: t.enum(['open', 'paid']) });
const policy = { owner: 'owner_id', state: 'status', transitions: { pay: { from: ['open'], to: 'paid' } } } as const;
const published = resource(orders, { ...policy, events: true });
const silent = resource(orders, policy);
const declaring = webhooks({ eventTypes: [eventType('invoice.sent', z.object({ id: z.string() }))] });
const offered = (types: readonly string[], declared: object = published) =>
  misspeltEvents({ controllers: [], resources: [declared], modules: [{ name: 'other' }, declaring] } as unknown as App, 'Hooks', types).map(
    ({ id, message, hint }) => [id, message, hint],
  );

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

test('W020: a type that is one slip away from a declared one', () => {
  const message = 'Hooks: availableEvents has "invoice.snet", which webhooks({ eventTypes }) does not declare.';
  expect(offered(['invoice.snet'])).toEqual([['W020', message, 'Did you mean "invoice.sent"?']]);
});

test('the event types of a resource are known by name', () => {
  expect(published.eventTypes).toEqual({
    created: 'order.created',
    updated: 'order.updated',
    deleted: 'order.deleted',
    restored: 'order.restored',
    pay: 'order.pay',
  });
});

test('a pattern is not an event type', () => {
  class Hooks extends WebhookEndpointController {
    static override readonly availableEvents = ['order.*', 'order paid', 'order.paid'];
  }
  const create = () => createApp({ modules: [accounts(), declaring], mount: { '/v1': { '/hooks': Hooks } } });
  expect(create).toThrow(/availableEvents\[0\].+an event type/s);
  expect(create).toThrow(/availableEvents\[1\].+an event type/s);
  expect(create).not.toThrow(/availableEvents\[2\]/);
});

test('published types, types of programs and other types are left alone', () => {
  expect(offered(['order.created', 'order.pay', 'order.paid', 'invoice.sent', 'invoice.paid'])).toEqual([]);
  expect(offered(['order.craeted'], silent)).toEqual([]);
});
