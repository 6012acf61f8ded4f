import { expect, test } from 'vitest';
import type { MetricRegistry } from '../observe/metric-registry.ts';
import { createApp } from './assemble/create-app.ts';
import type { Module } from './declare/module.ts';

const declared: string[] = [];
const registry: MetricRegistry = {
  counter: ({ name }) => (declared.push(name), { add: () => undefined }),
  histogram: ({ name }) => (declared.push(name), { observe: () => undefined }),
  gauge: ({ name }) => void declared.push(name),
};
const provider: Module = { name: 'provider', provides: () => ({ metrics: registry }) };
const user: Module = {
  name: 'user',
  install: () => void declared.push('installed'),
  metrics: (given) => void given.counter({ name: 'user_things_total', help: 'Things.', labels: { kind: ['big', 'small'] } }),
};
const app = (modules: Module[]) => createApp({ database: 'sqlite::memory:', log: { level: 'silent' }, mount: {}, modules });

test('a module declares its metrics once, after every module is installed, whatever their order', () => {
  declared.length = 0;
  app([user, provider]);
  expect(declared).toEqual(['installed', 'user_things_total']);
});

test('without a registry nothing is declared', () => {
  declared.length = 0;
  app([user]);
  expect(declared).toEqual(['installed']);
});
