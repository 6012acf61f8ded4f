import fc from 'fast-check';
import { expect, test } from 'vitest';
import { candidatePatterns, isEventType, isPattern, matchesPattern, parsePatterns } from './subscription.ts';

const longest = `${'a'.repeat(49)}.${'b'.repeat(50)}`;

test.each(['order', 'order.paid', 'order.item.added', 'Order_2.paid-late', 'webhook.ping', '0', longest])('%j is an event type', (type) => {
  expect(isEventType(type)).toBe(true);
});

test.each([
  '',
  '.',
  'order.',
  '.paid',
  'order..paid',
  'order paid',
  'order.*',
  '*',
  'bestellung.größe',
  'order\n',
  'order/paid',
  `${longest}b`,
  7,
  null,
  undefined,
  ['order'],
])('%j is not an event type', (type) => {
  expect(isEventType(type)).toBe(false);
});

test.each(['*', 'order', 'order.paid', 'order.*', 'order.item.*', longest])('%j is a pattern', (pattern) => {
  expect(isPattern(pattern)).toBe(true);
});

test.each(['', '**', '*.paid', 'order*', 'order.*.paid', 'order.**', '.*', 'order.', '*.*', 'order .*', `${longest}.*`, null, 3])(
  '%j is not a pattern',
  (pattern) => {
    expect(isPattern(pattern)).toBe(false);
  },
);

test.each([
  ['order.paid', 'order.paid', true],
  ['order.paid', 'order.paid.late', false],
  ['order.paid', 'Order.paid', false],
  ['order.*', 'order.paid', true],
  ['order.*', 'order.item.added', true],
  ['order.*', 'order', false],
  ['order.*', 'orders.paid', false],
  ['order.item.*', 'order.item.added', true],
  ['order.item.*', 'order.paid', false],
  ['*', 'order', true],
  ['*', 'a.b.c.d', true],
  ['order', 'order', true],
  ['order', 'order.paid', false],
] as const)('the pattern %s on the type %s: %s', (pattern, type, expected) => {
  expect(matchesPattern(pattern, type)).toBe(expected);
});

test('the candidate patterns of a type are its own name, each prefix, and the star', () => {
  expect(candidatePatterns('order.item.added')).toEqual(['order.item.added', 'order.item.*', 'order.*', '*']);
  expect(candidatePatterns('order')).toEqual(['order', '*']);
});

const part = fc.stringMatching(/^[ab_-]{1,3}$/);
const type = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('.'));
const pattern = fc.oneof(
  type,
  type.map((prefix) => `${prefix}.*`),
  fc.constant('*'),
);

test('looking up the candidates finds exactly the patterns that match', () => {
  fc.assert(
    fc.property(pattern, type, (subscribed, published) => {
      expect(candidatePatterns(published).includes(subscribed)).toBe(matchesPattern(subscribed, published));
    }),
    { numRuns: 2000 },
  );
});

test('subscriptions are 1 to 50 patterns, kept in order without repetitions', () => {
  expect(parsePatterns(['order.*', 'invoice.paid', 'order.*'])).toEqual(['order.*', 'invoice.paid']);
  expect(parsePatterns(Array.from({ length: 50 }, (_, index) => `e.${index}`))).toHaveLength(50);
});

test.each([
  [undefined],
  [null],
  ['order.*'],
  [[]],
  [{}],
  [['order.**']],
  [[1]],
  [['']],
  [Array.from({ length: 51 }, (_, index) => `e.${index}`)],
])('not a list of subscriptions: %j', (value) => {
  expect(parsePatterns(value)).toMatchObject({ faults: [{ code: 'invalid_events' }] });
});

test('with available events, a pattern that matches none of them is refused by name', () => {
  const available = ['order.paid', 'order.item.added', 'invoice.paid'];
  for (const good of ['*', 'order.*', 'order.item.*', 'invoice.paid']) expect(parsePatterns([good], available)).toEqual([good]);
  expect(parsePatterns(['order.*', 'user.*', 'order.created'], available)).toEqual({
    faults: [{ code: 'unknown_event', message: 'No available event matches user.*, order.created.', entries: [1, 2] }],
  });
  expect(parsePatterns(['*'], [])).toMatchObject({ faults: [{ code: 'unknown_event' }] });
});

test('events of the module itself may be subscribed to whatever events are available', () => {
  for (const pattern of ['webhook.endpoint.disabled', 'webhook.*', 'webhook.endpoint.*', 'webhook.ping'])
    expect(parsePatterns([pattern], ['order.paid'])).toEqual([pattern]);
  expect(parsePatterns(['webhook.other'], ['order.paid'])).toMatchObject({ faults: [{ code: 'unknown_event' }] });
});

test('every faulty entry of a list is named, whatever is wrong with it', () => {
  expect(parsePatterns(['order..paid', 'user.*', 'order.paid', 7], ['order.paid'])).toMatchObject({
    faults: [
      { code: 'invalid_events', entries: [0, 3] },
      { code: 'unknown_event', entries: [1] },
    ],
  });
});
