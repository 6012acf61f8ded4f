import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { EndpointPace, SLOW_AFTER_MS } from './endpoint-pace.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

const endpoint = (id: string, owner_id = 'owner') => ({ id, owner_id });
const admitMany = (pace: EndpointPace, target: ReturnType<typeof endpoint>, count: number): number =>
  Array.from({ length: count }, () => pace.admit(target)).filter(Boolean).length;

/** An answer at once makes an endpoint fast. */
function answerFast(pace: EndpointPace, target: ReturnType<typeof endpoint>): void {
  pace.admit(target);
  const sent = { endpoint: target };
  pace.begin(sent, () => undefined);
  pace.end(sent);
}

/** A request that has no answer. */
function hang(pace: EndpointPace, target: ReturnType<typeof endpoint>, leaveSlot: () => void = () => undefined): void {
  pace.begin({ endpoint: target }, leaveSlot);
}

test('an endpoint of which nothing is known gets two requests, and its share once it has answered', () => {
  const pace = new EndpointPace({ concurrency: 100, perEndpoint: 10 });
  const target = endpoint('a');
  expect(admitMany(pace, target, 10)).toBe(2);
  expect(pace.load([]).get('a')).toBe(10);
  pace.leave(target);
  pace.leave(target);
  answerFast(pace, target);
  expect(admitMany(pace, target, 10)).toBe(10);
});

test('a request that takes long leaves its slot, and its endpoint is slow until it answers fast', () => {
  const pace = new EndpointPace({ concurrency: 10, perEndpoint: 10 });
  const target = endpoint('a');
  const left: string[] = [];
  pace.admit(target);
  hang(pace, target, () => left.push('first'));
  vi.advanceTimersByTime(SLOW_AFTER_MS - 1);
  expect(left).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(left).toEqual(['first']);
  expect(pace.admit(target)).toBe(true);
  // Known to be slow: it never takes a slot.
  hang(pace, target, () => left.push('second'));
  expect(left).toEqual(['first', 'second']);
});

test('slow endpoints of one owner get half of the slow lane, whatever their number, and others the rest', () => {
  const pace = new EndpointPace({ concurrency: 10, perEndpoint: 10 });
  const admitHanging = (target: ReturnType<typeof endpoint>): void => {
    if (pace.admit(target)) hang(pace, target);
  };
  const noisy = Array.from({ length: 20 }, (_, n) => endpoint(`n${n}`, 'noisy'));
  for (const target of noisy.slice(0, 5)) admitHanging(target);
  vi.advanceTimersByTime(SLOW_AFTER_MS);
  expect(noisy.slice(0, 5).map((target) => pace.admit(target))).toEqual([false, false, false, false, false]);
  expect(pace.load([]).get('n0')).toBe(10);
  const other = endpoint('b', 'other');
  admitHanging(other);
  vi.advanceTimersByTime(SLOW_AFTER_MS);
  expect(pace.admit(other)).toBe(true);
});

test('endpoints of one owner of which nothing is known get half of the slots together, until they answer or turn out to be slow', () => {
  const pace = new EndpointPace({ concurrency: 20, perEndpoint: 10 });
  const noisy = Array.from({ length: 30 }, (_, n) => endpoint(`n${n}`, 'noisy'));
  const admitted = noisy.filter((target) => pace.admit(target));
  expect(admitted).toHaveLength(10);
  const refused = noisy.filter((target) => !admitted.includes(target));
  const full = (): number => refused.filter(({ id }) => pace.load([]).get(id) === 10).length;
  expect(full()).toBe(20);
  expect(pace.admit(endpoint('other', 'other'))).toBe(true);
  for (const target of admitted.slice(0, 9)) hang(pace, target);
  vi.advanceTimersByTime(SLOW_AFTER_MS);
  expect(full()).toBe(0);
  expect(refused.filter((target) => pace.admit(target))).toHaveLength(9);
  expect(full()).toBe(11);
  answerFast(pace, admitted[9]!);
  expect(full()).toBe(0);
});

test('when one endpoint of an owner turns out to be slow, the others must answer again before they get their share', () => {
  const pace = new EndpointPace({ concurrency: 100, perEndpoint: 10 });
  const [fast, stranger, slow] = [endpoint('fast'), endpoint('stranger', 'other'), endpoint('slow')];
  answerFast(pace, fast);
  answerFast(pace, stranger);
  pace.admit(slow);
  hang(pace, slow);
  vi.advanceTimersByTime(SLOW_AFTER_MS);
  expect(admitMany(pace, fast, 10)).toBe(2);
  expect(admitMany(pace, stranger, 10)).toBe(10);
});

test('a paused endpoint counts as full', () => {
  const pace = new EndpointPace({ concurrency: 100, perEndpoint: 10 });
  expect(pace.load(['a']).get('a')).toBe(10);
});
