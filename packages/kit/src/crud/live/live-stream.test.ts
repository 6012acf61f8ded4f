import { expect, test } from 'vitest';
import { type LiveList, type LiveSource, LiveStream, WAITING_EVENTS_MAX } from './live-stream.ts';

const list: LiveList = {
  rights: 'r',
  shape: undefined,
  isChanged: () => true,
  bounds: new Map(),
  times: [],
  stateOf: () => '',
  read: () => Promise.resolve(new Map()),
};
function open() {
  const stop = new AbortController();
  const source = { signal: stop.signal, policy: { bounds: { owner: 'owner_id', tenant: 'org' } } } as LiveSource;
  return { stop, stream: new LiveStream(source, list) };
}
const batch = (count: number) => Array.from({ length: count }, (_, index) => ({ event: 'upsert', data: { key: index } }));

test('what waits for a slow client is bounded: beyond that it is dropped, and the list is read again', async () => {
  const { stream } = open();
  stream.push(batch(WAITING_EVENTS_MAX - 1));
  expect(stream.isOver).toBe(false);
  stream.push(batch(2));
  expect(stream.isOver).toBe(true);
  expect(await stream.next()).toBeUndefined();
});

test('a client that reads gets every batch, in order', async () => {
  const { stream } = open();
  for (let round = 0; round < 5; round += 1) {
    stream.push(batch(WAITING_EVENTS_MAX));
    expect(await stream.next()).toHaveLength(WAITING_EVENTS_MAX);
  }
  expect(stream.isOver).toBe(false);
});

test('a stream that waits ends with the reason of its signal, and with the error that the reader found', async () => {
  const { stop, stream } = open();
  const waiting = stream.next();
  stop.abort(new Error('the client left'));
  await expect(waiting).rejects.toThrow('the client left');
  const failed = open().stream;
  const next = failed.next();
  failed.fail(new Error('the right has ended'));
  await expect(next).rejects.toThrow('the right has ended');
});

test('an open stream has nothing of the list it was read with but its rights, and the column that changes look for it by', () => {
  const { stream } = open();
  expect(Object.keys(stream.list)).toEqual(['rights']);
  expect(stream.bound).toBeUndefined();
});

test.each([
  [
    { org: 'north', status: 'open', owner_id: 'ann' },
    { column: 'owner_id', value: 'ann' },
  ],
  [
    { org: 'north', status: 'open' },
    { column: 'status', value: 'open' },
  ],
  [{ org: 'north' }, { column: 'org', value: 'north' }],
])('changes look for a list of %j by the value that the fewest lists share', (values, bound) => {
  const { source } = open().stream;
  const found = new LiveStream(source, { ...list, bounds: new Map(Object.entries(values)) });
  expect(found.bound).toEqual(bound);
});
