import { expect, test } from 'vitest';
import { InvalidAudience, parseAudience, reaches } from './audience.ts';
import type { Audience, AudienceOptions } from './audience.ts';

const faultOf = (options: unknown): unknown => {
  try {
    return parseAudience(options as AudienceOptions).kind;
  } catch (error) {
    return error instanceof InvalidAudience ? error.code : error;
  }
};

test.each([
  [{ owner: 'ada' }, { kind: 'owner', owner: 'ada' }],
  [{ tenantKey: 'acme' }, { kind: 'tenant', tenantKey: 'acme' }],
  [
    { owner: 'ada', tenantKey: 'acme' },
    { kind: 'owner_in_tenant', owner: 'ada', tenantKey: 'acme' },
  ],
  [{ broadcast: true }, { kind: 'broadcast' }],
  [
    { owner: 'ada', broadcast: false },
    { kind: 'owner', owner: 'ada' },
  ],
  [
    { owner: 'ada', tenantKey: undefined, broadcast: undefined },
    { kind: 'owner', owner: 'ada' },
  ],
] as [AudienceOptions, Audience][])('%j is one audience', (options, audience) => {
  expect(parseAudience(options)).toEqual(audience);
});

test.each([
  [{}, 'audience_missing'],
  [{ broadcast: false }, 'audience_missing'],
  [{ owner: 'ada', broadcast: true }, 'audience_conflict'],
  [{ tenantKey: 'acme', broadcast: true }, 'audience_conflict'],
  [{ owner: 'ada', tenantKey: 'acme', broadcast: true }, 'audience_conflict'],
  [{ tenantKey: '' }, 'tenant_key_invalid'],
  [{ owner: 'ada', tenantKey: '' }, 'tenant_key_invalid'],
  [{ owner: 'ada', tenantKey: null }, 'tenant_key_invalid'],
  [{ owner: '' }, 'owner_invalid'],
  [{ owner: null, tenantKey: 'acme' }, 'owner_invalid'],
  [{ owner: 7 }, 'owner_invalid'],
  [{ owner: { id: 'ada' } }, 'owner_invalid'],
  [{ broadcast: 'yes' }, 'broadcast_invalid'],
  [{ broadcast: 1, owner: 'ada' }, 'broadcast_invalid'],
])('%j is refused: %s', (options, fault) => {
  expect(faultOf(options)).toBe(fault);
});

const endpoints = {
  adaPersonal: { owner: 'ada', tenantKey: '' },
  bobPersonal: { owner: 'bob', tenantKey: '' },
  adaAtAcme: { owner: 'ada', tenantKey: 'acme' },
  bobAtAcme: { owner: 'bob', tenantKey: 'acme' },
  adaAtGlobex: { owner: 'ada', tenantKey: 'globex' },
};

test.each([
  ['an owner reaches only personal endpoints', { kind: 'owner', owner: 'ada' }, ['adaPersonal']],
  ['an owner within a tenant: both must match', { kind: 'owner_in_tenant', owner: 'ada', tenantKey: 'acme' }, ['adaAtAcme']],
  ['a tenant reaches every endpoint within it', { kind: 'tenant', tenantKey: 'acme' }, ['adaAtAcme', 'bobAtAcme']],
  ['a broadcast reaches all', { kind: 'broadcast' }, Object.keys(endpoints)],
  ['an event without an audience reaches no endpoint', null, []],
] as [string, Audience | null, string[]][])('%s', (_rule, audience, expected) => {
  const reached = Object.entries(endpoints).filter(([, endpoint]) => reaches(audience, endpoint));
  expect(reached.map(([name]) => name)).toEqual(expected);
});
