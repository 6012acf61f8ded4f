import { expect, test } from 'vitest';
import { z } from 'zod';
import { job } from '../declare/job.ts';
import { JobCatalog } from '../declare/job-catalog.ts';
import { masked, sensitiveOf } from './masked-payload.ts';

test('sensitive members are masked at any depth; escaped keys keep their names, and null is shown', () => {
  const sensitive = { names: new Set(['token', '0']) };
  expect(masked('{"a":[{"token":{"b":1}},{"token":null}],"token":0}', sensitive)).toEqual({
    a: [{ token: '***' }, { token: null }],
    token: '***',
  });
  // After it, JSON.parse would give the key \n of the next one the name \.
  masked(String.raw`{"x":1,"\\":2}`, sensitive);
  expect(masked(String.raw`{"x":1,"\n":{"token":3}}`, sensitive)).toEqual({ x: 1, '\n': { token: '***' } });
  expect(Object.keys(masked('{"__proto__":{"token":1}}', sensitive) as object)).toEqual(['__proto__']);
});

test('nothing of a job that this code does not know is shown, and an input that was undefined is null', () => {
  expect(masked('{"a":1}', null)).toBe('***');
  expect(masked('', { names: new Set() })).toBeNull();
});

test('what a schema marks is masked where the schema has it; the same name elsewhere is shown', () => {
  const catalog = new JobCatalog([
    job('mail.send', {
      input: z.object({
        code: z.string().meta({ 'x-sensitive': true }),
        problem: z.object({ code: z.string() }),
        to: z.array(z.object({ email: z.string().meta({ 'x-sensitive': true }), secret: z.string() })),
      }),
      result: z.object({ code: z.number() }),
      sensitive: ['secret'],
      run: () => ({ code: 250 }),
    }),
  ]);
  const parts = sensitiveOf({ name: 'mail.send' }, catalog);
  const input = { code: '123456', problem: { code: 'not_found' }, to: [{ email: 'ada@example.com', secret: 's' }] };
  expect(masked(JSON.stringify(input), parts, parts?.input)).toEqual({
    code: '***',
    problem: { code: 'not_found' },
    to: [{ email: '***', secret: '***' }],
  });
  expect(masked('{"code":250}', parts, parts?.result)).toEqual({ code: 250 });
  // Results of steps have no schema.
  expect([...(parts?.stepNames ?? [])].toSorted()).toEqual(['code', 'email', 'secret']);
});
