import { expect, test } from 'vitest';
import { Container, scoped, service, singleton, transient, value } from './index.ts';
import { findServiceFaults } from './verify.ts';

const [a, b, c, d] = [service<number>('a'), service<number>('b'), service<number>('c'), service<number>('d')];
const make = (): number => 1;

test('a graph that can be built has no faults', () => {
  expect(findServiceFaults([value(a, 1), singleton(b, { a }, make), transient(c, { a, b }, make), scoped(d, { c }, make)])).toEqual([]);
});

test('a missing dependency is named with who needs it and what to add', () => {
  expect(findServiceFaults([singleton(a, { b }, make)])).toEqual([
    'a needs b, which nothing provides. Add singleton(b, …), scoped(b, …) or value(b, …) to the services of the application.',
  ]);
});

test('a namesake is explained: two declarations are two services', () => {
  const twin = service<number>('b');
  expect(findServiceFaults([singleton(a, { b }, make), value(twin, 1)])[0]).toContain(
    "two calls of service('b') make two different services",
  );
});

test('a cycle is shown as the path that closes it, once', () => {
  const faults = findServiceFaults([
    singleton(a, { b }, make),
    singleton(b, { c }, make),
    singleton(c, { a }, make),
    singleton(d, { a }, make),
  ]);
  expect(faults).toHaveLength(1);
  expect(faults[0]).toMatch(/^a → b → c → a is a cycle/);
  expect(findServiceFaults([scoped(a, { a }, make)])[0]).toMatch(/^a → a is a cycle/);
});

test('a singleton that captures a scoped service is found, directly and through transients', () => {
  expect(findServiceFaults([singleton(a, { b }, make), scoped(b, {}, make)])).toEqual([
    'a → b: a is a singleton and would keep the b of one request for all others. Make a scoped, or b a singleton.',
  ]);
  expect(findServiceFaults([singleton(a, { b }, make), transient(b, { c }, make), scoped(c, {}, make)])[0]).toMatch(
    /^a → b → c: a is a singleton/,
  );
});

test('a service provided twice is refused', () => {
  expect(findServiceFaults([value(a, 1), value(a, 2)])).toEqual([
    'a is provided twice. Keep one; tests replace a service with override().',
  ]);
});

test('a container refuses a faulty graph with every fault at once, before it builds anything', () => {
  let built = 0;
  const count = (): number => ++built;
  expect(() => new Container([singleton(a, { b }, count), singleton(c, { d }, count), scoped(d, {}, count)])).toThrow(/a needs b[^]*c → d/);
  expect(built).toBe(0);
});
