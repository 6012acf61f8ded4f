import { expect, test } from 'vitest';
import type { ServerFacts } from '../../db/engine/postgres/server-facts.ts';
import { describeServer, serverWarnings } from './server-warnings.ts';

const primary: ServerFacts = {
  version: '18.1',
  isStandby: false,
  isReadOnly: false,
  replicaLagMs: null,
  replicas: 0,
  pooler: 'none',
  statementMsMax: 900_000,
  connectionsMax: 97,
};
const own = { poolMax: 10, keepAliveMs: 10_000 };
const ids = (facts: Partial<ServerFacts>, connections = own) =>
  serverWarnings('default', { ...primary, ...facts }, connections).map(({ id }) => id);

test('a server that has everything is not warned about', () => {
  expect(ids({})).toEqual([]);
  expect(ids({ replicas: 2, replicaLagMs: 3 })).toEqual([]);
  expect(describeServer({ ...primary, replicas: 2, replicaLagMs: 3 }, own)).toBe(
    'PostgreSQL 18.1, takes changes, 2 replicas, 3 ms behind, no pooler, a pool of 10 of 97 connections, keep-alive after 10 s, statements limited to 900 s',
  );
});

test('what an app would miss in an incident is warned about, each by its own check', () => {
  expect(ids({ isStandby: true, isReadOnly: true, replicaLagMs: 5 })).toEqual(['W035']);
  expect(ids({ isReadOnly: true })).toEqual(['W035']);
  expect(ids({ replicas: 1, replicaLagMs: 60_000 })).toEqual(['W036']);
  expect(ids({ statementMsMax: 0 })).toEqual(['W034']);
  expect(ids({ connectionsMax: 29 })).toEqual(['W037']);
  expect(ids({ connectionsMax: 29, pooler: 'transaction' })).toEqual([]);
  expect(ids({}, { ...own, keepAliveMs: 0 })).toEqual(['W038']);
});
