import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { model, t } from '../db/index.ts';
import { fieldCodes } from '../errors/field-codes.ts';
import type { FieldError } from '../errors/kit-error.ts';
import { allowAny } from '../permissions/built-ins.ts';
import { testApp, type TestApp } from '../testing/test-app.ts';
import { Controller } from './compile/controller.ts';
import { jsonSchema } from './declare/json-schema.ts';
import { route } from './declare/route.ts';
import type { Schema } from './declare/schema.ts';

const STATES = ['active', 'revoked'] as const;
const orders = model('validation_codes', {
  id: t.uuidv7().pk(),
  name: t.text(4),
  state: t.enum([...STATES]),
  count: t.int({ min: 1, max: 9 }),
  at: t.timestamp(),
  key: t.uuid(),
  paid: t.bool(),
});

/** The same record, as three kinds of schema say it. */
const schemas: Readonly<Record<string, Schema>> = {
  zod: z.object({
    name: z.string().max(4),
    state: z.enum(STATES),
    count: z.int().min(1).max(9),
    at: z.iso.datetime(),
    key: z.uuid(),
    paid: z.boolean(),
  }),
  'json-schema': jsonSchema({
    type: 'object',
    properties: {
      name: { type: 'string', maxLength: 4 },
      state: { enum: [...STATES] },
      count: { type: 'integer', minimum: 1, maximum: 9 },
      at: { type: 'string', format: 'date-time' },
      key: { type: 'string', format: 'uuid' },
      paid: { type: 'boolean' },
    },
    required: ['name', 'state', 'count', 'at', 'key', 'paid'],
    additionalProperties: false,
  }),
  model: orders.input,
};

/** A library that names its faults its own way. */
const foreign: Schema = {
  '~standard': {
    version: 1,
    vendor: 'foreign',
    validate: () => ({ issues: [{ message: 'too short', code: 'minLength', path: ['name'] }] }),
    jsonSchema: { input: () => ({ type: 'object', properties: { name: {} } }), output: () => ({}) },
  },
};

class CodesController extends Controller {
  constructor() {
    super();
    const all = { ...schemas, foreign, keys: z.record(z.string().max(3), z.int()) };
    for (const [name, body] of Object.entries(all))
      Object.assign(this, { [name]: route.post(`/${name}`, { body, permission: allowAny }, () => undefined) });
  }
}

let app: TestApp;
beforeAll(async () => {
  app = await testApp({ mount: { '/': { '/': CodesController } } });
});
afterAll(() => app.close());

async function faultsOf(kind: string, payload: object): Promise<FieldError[]> {
  const response = await app.inject({ method: 'POST', url: `/${kind}`, payload });
  expect(response.statusCode).toBe(422);
  return response.json<{ errors: FieldError[] }>().errors;
}

const good = {
  name: 'ann',
  state: 'active',
  count: 1,
  at: '2030-01-01T00:00:00.000Z',
  key: '0190c0de-0000-7000-8000-000000000000',
  paid: true,
};

describe.each(Object.keys(schemas))('faults found by a schema of the kind %s', (kind) => {
  test.each([
    ['name', 7, 'invalid_type'],
    ['name', 'anna-m', 'too_big'],
    ['name', undefined, 'required'],
    ['state', 'expired', 'invalid_value'],
    ['count', 0, 'too_small'],
    ['count', 10, 'too_big'],
    ['count', 'one', 'invalid_type'],
    ['at', 'tomorrow', 'invalid_format'],
    ['key', 'k', 'invalid_format'],
    ['paid', 'yes', 'invalid_type'],
    ['colour', 'red', 'unknown_field'],
  ])('%s: %j is %s', async (field, value, code) => {
    const faults = await faultsOf(kind, { ...good, [field]: value });
    expect(faults.map(({ location, code: given }) => [location.join('.'), given])).toEqual([[`body.${field}`, code]]);
    expect(Object.keys(fieldCodes)).toContain(code);
  });

  test('a value that is not in a list comes with the list', async () => {
    const [fault] = await faultsOf(kind, { ...good, state: 'expired' });
    for (const state of STATES) expect(fault?.message).toContain(`"${state}"`);
  });

  test('are all reported at once', async () => {
    const faults = await faultsOf(kind, { name: 7, state: 'expired', count: 0, at: 'tomorrow', key: good.key, colour: 1 });
    expect(faults.map(({ location }) => String(location[1])).toSorted()).toEqual(['at', 'colour', 'count', 'name', 'paid', 'state']);
  });
});

test('the name of a member has a code of its own, and a code of another dialect is `invalid`', async () => {
  expect((await faultsOf('keys', { long_name: 1 })).map(({ code }) => code)).toEqual(['invalid_key']);
  expect((await faultsOf('foreign', { name: 'x' })).map(({ code }) => code)).toEqual(['invalid']);
  expect(fieldCodes).toMatchObject({ invalid_key: expect.any(String), invalid: expect.any(String) });
});
