import { afterAll, beforeAll, expect, test } from 'vitest';
import * as z from 'zod';
import { allowAny } from '../permissions/built-ins.ts';
import { testApp, type TestApp } from '../testing/test-app.ts';
import { Controller } from './compile/controller.ts';
import { jsonSchema } from './declare/json-schema.ts';
import { route } from './declare/route.ts';

const MEBIBYTE = 1024 * 1024;

class IntakeController extends Controller {
  plain = route.post('/plain', { body: z.object({ name: z.string().optional() }), permission: allowAny }, () => undefined);
  json = route.post(
    '/json',
    { body: jsonSchema({ type: 'object', properties: { name: { type: 'string' } }, additionalProperties: false }), permission: allowAny },
    () => undefined,
  );
  either = route.post(
    '/either',
    {
      body: z.discriminatedUnion('kind', [
        z.object({ kind: z.literal('a'), a: z.int() }),
        z.object({ kind: z.literal('b'), b: z.array(z.object({ c: z.int() })) }),
      ]),
      permission: allowAny,
    },
    () => undefined,
  );
  list = route.post('/list', { body: z.array(z.int()), permission: allowAny }, () => undefined);
}

let app: TestApp;
beforeAll(async () => {
  app = await testApp({
    mount: { '/': { '/': IntakeController } },
    bodyBytesMax: 32 * MEBIBYTE,
    jsonMembersMax: 1_000_000,
    jsonItemsMax: 1_000_000,
  });
});
afterAll(() => app.close());

const post = (url: string, payload: string) =>
  app.inject({ method: 'POST', url, payload, headers: { 'content-type': 'application/json' } });

const fields = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`nam${index}`, 1]));

test.each([
  ['unknown fields', '/plain', fields(200_000)],
  ['unknown fields of a JSON Schema', '/json', fields(20_000)],
  ['unknown fields of an alternative', '/either', { kind: 'a', a: 1, ...fields(200_000) }],
  ['unknown fields deep in a list', '/either', { kind: 'b', b: Array.from({ length: 2000 }, () => ({ c: 1, ...fields(100) })) }],
  ['wrong items', '/list', Array.from({ length: 200_000 }, () => 'x')],
  ['unknown parameters', `/plain?${Array.from({ length: 999 }, (_, index) => `n${index}`).join('&')}`, {}],
])('%s without end are reported up to a hundred', async (_, url, body) => {
  const response = await post(url, JSON.stringify(body));
  const { code, errors } = response.json<{ code: string; errors: unknown[] }>();
  expect([response.statusCode, code, errors.length]).toEqual([422, 'validation_error', 100]);
});

test('a fault behind a string of many megabytes is found like any other', async () => {
  const text = 'a\\n'.repeat(4 * MEBIBYTE);
  const response = await post('/plain', `{"name":"${text}","name":1}`);
  expect([response.statusCode, response.json<{ code: string }>().code]).toEqual([400, 'malformed_body']);
});
