import { describe, expect, test } from 'vitest';
import { model, softDelete, t } from '../../db/index.ts';
import { isStaff } from '../../permissions/index.ts';
import { many, resource, writableBy } from '../index.ts';
import type { AnyResource } from '../declare/resource.ts';
import { clientColumns, serverSetColumns } from '../policy/column-roles.ts';
import { policiesOf } from '../policy/policies.ts';
import type { Intent, Verb } from './intent.ts';
import { WritePlan } from './write-plan.ts';

const bills = model('bills', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  org: t.text(20).readOnly(),
  title: t.text(40),
  state: t.enum(['open', 'paid']).dbDefault('open'),
});
const lines = model('lines', { id: t.uuidv7().pk(), bill_id: t.ref(() => bags) });
const bags = model('bags', { id: t.uuidv7().pk(), title: t.text(40), ...softDelete() });
const bagLines = resource(lines, { unscoped: true });

function policyOf(declared: AnyResource) {
  const app = { controllers: [], resources: [declared, bagLines], modules: [], hasTenants: true, users: null };
  return policiesOf(app).of(declared);
}
const planOf = (declared: AnyResource, audit: object | null = null) =>
  new WritePlan(policyOf(declared), { audit: audit as never, events: null });

function intent(verb: Verb, more: Partial<Intent> = {}): Intent {
  const row = { values: { title: 'x' }, sent: ['title'], at: [] };
  return { verb, via: 'single', rows: [row], ...more } as unknown as Intent;
}
const plain = resource(bills, { owner: 'owner_id' });
const form = (declared: AnyResource, verb: Verb, more: Partial<Intent> = {}, isChecked = false) =>
  planOf(declared).formOf(intent(verb, more), isChecked);

describe('a write of one row is one statement where nothing needs the row before, after or beside it', () => {
  test.each<Verb>(['create', 'update', 'destroy'])('%s of a resource with an owner', (verb) => {
    expect(form(plain, verb)).toBe('statement');
  });

  test.each<[string, AnyResource, Verb]>([
    ['a row rule', resource(bills, { rows: () => ({ title: 'x' }) }), 'update'],
    ['a listener', resource(bills, { owner: 'owner_id', onChange: () => undefined }), 'destroy'],
    ['a hook of the verb', resource(bills, { owner: 'owner_id', hooks: { update: ({ before }) => Promise.resolve(before) } }), 'update'],
    [
      'a cascade',
      resource(bags, { unscoped: true, relations: { lines: many(() => lines, 'bill_id') }, softDelete: { cascade: ['lines'] } }),
      'destroy',
    ],
    ['a restore', resource(bags, { unscoped: true }), 'restore'],
    ['an action', plain, 'action'],
  ])('a transaction with %s', (_name, declared, verb) => {
    expect(form(declared, verb)).toBe('transaction');
  });

  test('a transaction where the change is recorded', () => {
    expect(planOf(plain, {}).formOf(intent('update'), false)).toBe('transaction');
    expect(planOf(resource(bills, { owner: 'owner_id', audit: false }), {}).formOf(intent('update'), false)).toBe('statement');
  });

  test('a transaction for several rows, for what is compared with the row, and for an update of nothing', () => {
    const row = intent('update').rows[0] as Intent['rows'][number];
    expect(form(plain, 'update', { rows: [row, row] })).toBe('transaction');
    expect(form(plain, 'update', {}, true)).toBe('transaction');
    expect(form(plain, 'update', { rows: [{ ...row, values: {} }] })).toBe('transaction');
    expect(form(plain, 'update', { asked: { authorize: () => Promise.resolve() } })).toBe('transaction');
  });

  test('a hook of another verb does not count', () => {
    expect(form(resource(bills, { owner: 'owner_id', hooks: { destroy: async (_context, next) => next() } }), 'update')).toBe('statement');
  });
});

test('what options give work to', () => {
  const plan = planOf(resource(bills, { owner: 'owner_id', fields: { title: writableBy(isStaff) }, validate: () => [] }));
  expect([plan.hasWriteRules, plan.validates('create'), plan.validates('destroy'), plan.mayLeaveScope()]).toEqual([
    true,
    true,
    false,
    false,
  ]);
});

test('the server sets tenant, owner and state; clients send the rest, without a generated key', () => {
  const transitions = { pay: { from: ['open'], to: 'paid' } } as const;
  const policy = policyOf(resource(bills, { owner: 'owner_id', tenant: 'org', state: 'state', transitions }));
  expect([...serverSetColumns(policy)].toSorted()).toEqual(['org', 'owner_id', 'state']);
  expect(clientColumns(policy).map(({ name }) => name)).toEqual(['title']);
});
