import { expect, test } from 'vitest';
import { t } from '../../db/declare/column.ts';
import { model } from '../../db/declare/model.ts';
import { modelField, modelView } from './model-view.ts';

const keys = model(
  'keys',
  {
    id: t.uuidv7().pk(),
    name: t.text({ min: 1, max: 100 }),
    prefix: t.text(12).unique(),
    digest: t.text(64).sensitive(),
    tenant_key: t.text(200).dbDefault(''),
    uses: t.bigint(),
    expires_at: t.timestamp().nullable(),
    created_at: t.timestamp(),
  },
  { indexes: [{ columns: ['tenant_key', 'id'] }] },
);

const view = modelView(keys, [
  'name',
  { name: 'prefix', kind: 'code' },
  { name: 'owner', kind: 'link' },
  { name: 'tenant_key', label: 'Tenant', secondary: true },
  'uses',
  'expires_at',
  { name: 'created_at', label: 'Created' },
]);

const row = {
  id: '1',
  name: 'ci',
  prefix: 'abc',
  digest: 'hidden',
  tenant_key: '',
  uses: 7n,
  expires_at: new Date(0),
  created_at: new Date(1),
};

test('the model says the label and the kind of a column', () => {
  expect(view.columns.map(({ name, label, kind }) => [name, label, kind])).toEqual([
    ['name', 'Name', 'text'],
    ['prefix', 'Prefix', 'code'],
    ['owner', 'Owner', 'link'],
    ['tenant_key', 'Tenant', 'text'],
    ['uses', 'Uses', 'number'],
    ['expires_at', 'Expires', 'time'],
    ['created_at', 'Created', 'time'],
  ]);
});

test('a row is shown by the declared columns alone: what is not among them does not leave', () => {
  const values = {
    name: 'ci',
    prefix: 'abc',
    owner: 'ada',
    tenant_key: null,
    uses: 7,
    expires_at: '1970-01-01T00:00:00.000Z',
    created_at: '1970-01-01T00:00:00.001Z',
  };
  expect(view.values(row, { owner: 'ada' })).toEqual(values);
});

test('a sensitive column is refused, whatever kind is given; so is a name that is neither a column nor has a kind', () => {
  expect(() => modelView(keys, ['digest'])).toThrow('cannot show "digest" of "keys"');
  expect(() => modelView(keys, [{ name: 'digest', kind: 'code' }])).toThrow('cannot show "digest" of "keys"');
  expect(() => modelView(keys, ['onwer'])).toThrow('cannot show "onwer" of "keys"');
  expect(() => modelField(keys, 'digest')).toThrow('no field for "digest" of "keys"');
});

test('a field has what its column says, and what is given instead', () => {
  expect(modelField(keys, 'name')).toEqual({ name: 'name', label: 'Name', kind: 'text', required: true, maxLength: 100 });
  expect(modelField(keys, 'expires_at', { label: 'Expires' })).toEqual({
    name: 'expires_at',
    label: 'Expires',
    kind: 'time',
    nullable: true,
  });
});
