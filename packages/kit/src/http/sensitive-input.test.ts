import { expect, test } from 'vitest';
import { z } from 'zod';
import { openApiDocument, openApiText } from '../openapi/document.ts';
import { allowAny } from '../permissions/index.ts';
import { testApp } from '../testing/test-app.ts';
import { Controller } from './compile/controller.ts';
import { route } from './declare/route.ts';

const secret = (schema: z.ZodString = z.string()) => schema.meta({ 'x-sensitive': true });
/** A message that repeats what was sent, as careless schemas do. */
const quoting = z.string().refine((value) => value.length > 30, { error: ({ input }) => `"${String(input)}" is too short` });

class VaultController extends Controller {
  put = route.post(
    '/',
    {
      permission: allowAny,
      csrf: false,
      body: z
        .strictObject({
          label: quoting,
          box: z.strictObject({ code: quoting.meta({ 'x-sensitive': true }), short: secret(z.string().max(2)).optional() }),
          list: z.array(z.strictObject({ value: secret() })).optional(),
        })
        .refine(() => false, { error: ({ input }) => `refused: ${JSON.stringify(input)}` }),
    },
    () => undefined,
  );
  log = route.post(
    '/log',
    { permission: allowAny, csrf: false, body: z.strictObject({ box: z.strictObject({ pin_of_door: secret() }) }) },
    ({ body, log }) => log.info({ request: { deep: [body] }, pin_of_door: null }, 'taken'),
  );
}

test('no message of a validation fault repeats a sensitive value, also in messages of the app’s own schema', async () => {
  await using app = await testApp({ mount: { '/v1': { '/vault': VaultController } } });
  const post = async (payload: object) => app.inject({ method: 'POST', url: '/v1/vault', payload });
  const body = { label: 'a label', box: { code: 's3cret-code', short: 'abc' }, list: [{ value: 'value-77' }] };
  const refused = await post(body);
  expect(refused.statusCode).toBe(422);
  for (const text of ['s3cret-code', 'value-77', '"abc"']) expect(refused.body).not.toContain(text);
  const errors = refused.json<{ errors: { location: string[]; message: string }[] }>().errors;
  expect(errors.find(({ location }) => location.at(-1) === 'label')?.message).toBe('"a label" is too short');
  expect(errors.find(({ location }) => location.at(-1) === 'code')?.message).toBe('Not valid.');
  // A fault of the whole body may repeat everything in it.
  const whole = await post({ ...body, label: 'l'.repeat(31), box: { code: `s3cret-${'c'.repeat(30)}` } });
  expect(whole.json<{ errors: { message: string }[] }>().errors[0]?.message).toContain('[masked]');
  for (const text of ['s3cret', 'value-77']) expect(whole.body).not.toContain(text);
  expect(JSON.stringify(app.records)).not.toMatch(/s3cret|value-77/);
});

test('a record of the log masks what a schema marks, at any depth, and nothing else', async () => {
  await using app = await testApp({ mount: { '/v1': { '/vault': VaultController } } });
  await app.inject({ method: 'POST', url: '/v1/vault/log', payload: { box: { pin_of_door: 'pin-90210' } } });
  expect(app.records.find(({ msg }) => msg === 'taken')).toMatchObject({
    request: { deep: [{ box: { pin_of_door: '[masked]' } }] },
    pin_of_door: null,
  });
  expect(JSON.stringify(app.records)).not.toContain('pin-90210');
});

test('the document marks it', async () => {
  await using app = await testApp({ mount: { '/v1': { '/vault': VaultController } } });
  const text = openApiText(openApiDocument(app.app.routes, { title: 'Vault', version: '1' }));
  expect(text.match(/"x-sensitive": true/g)?.length).toBeGreaterThanOrEqual(4);
});
