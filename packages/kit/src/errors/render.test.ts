import { describe, expect, test } from 'vitest';
import { coreErrors } from './core-errors.ts';
import { errors } from './error-map.ts';
import { KitError } from './kit-error.ts';
import { renderError, type RenderOptions } from './render.ts';

class OutOfStock extends Error {
  readonly left = 2;
}
class SoldOutForever extends OutOfStock {}

const problem: RenderOptions = { format: 'problem+json', requestId: 'r-1' };
const detail: RenderOptions = { format: 'detail', requestId: 'r-1' };
const bodyOf = (thrown: unknown, options: RenderOptions = problem) => JSON.parse(renderError(thrown, options).body) as unknown;

describe('problem+json', () => {
  test('carries type, title, status, detail, code, request id, faults and extensions', () => {
    const faults = [{ location: ['body', 'total'], code: 'required', message: 'Required.' }];
    const rendered = renderError(coreErrors.validation_error({ errors: faults, extensions: { fields: ['total'] } }), problem);
    expect(rendered.contentType).toBe('application/problem+json; charset=utf-8');
    expect(JSON.parse(rendered.body)).toEqual({
      type: 'urn:kit:error:validation_error',
      title: 'Validation error',
      status: 422,
      detail: 'The request is well formed, but some of its values are invalid.',
      code: 'validation_error',
      request_id: 'r-1',
      errors: faults,
      fields: ['total'],
    });
  });

  test('an extension cannot pose as a member of the format', () => {
    expect(bodyOf(coreErrors.conflict({ extensions: { status: 200, code: 'fine', current: 3 } }))).toMatchObject({
      status: 409,
      code: 'conflict',
      current: 3,
    });
  });
});

describe('detail', () => {
  test('is detail, code and faults', () => {
    expect(renderError(coreErrors.not_found(), detail).contentType).toBe('application/json; charset=utf-8');
    expect(bodyOf(coreErrors.not_found(), detail)).toEqual({ detail: 'Not found.', code: 'not_found' });
    expect(bodyOf(coreErrors.validation_error({ errors: [{ location: ['query'], code: 'x', message: 'y' }] }), detail)).toHaveProperty(
      'errors',
    );
  });

  test('has no other members, whatever the error carries', () => {
    const error = coreErrors.insufficient_scope({ extensions: { required_scope: 'orders:read' } });
    expect(Object.keys(bodyOf(error, detail) as object)).toEqual(['detail', 'code']);
    expect(bodyOf(error, problem)).toMatchObject({ required_scope: 'orders:read' });
  });
});

describe('what is unknown', () => {
  const secret = 'password=hunter2';
  const thrown = [
    new Error(secret),
    new TypeError(secret),
    secret,
    { message: secret, status: 404, statusCode: 404 },
    undefined,
    null,
    42,
    Symbol('x'),
  ];

  test.each(thrown.map((value) => [value]))('%s becomes a 500 with a request id and nothing else', (value) => {
    for (const options of [problem, detail]) {
      const rendered = renderError(value, options);
      expect(rendered.status).toBe(500);
      expect(rendered.headers).toEqual({ 'x-request-id': 'r-1' });
      expect(rendered.body).not.toContain('hunter2');
      const own = options === problem ? { request_id: 'r-1' } : {};
      expect(JSON.parse(rendered.body)).toMatchObject({ code: 'internal_error', ...own });
      expect(rendered.log).toEqual({ level: 'error', error: value });
    }
  });

  test('an upstream error that happens to carry a status stays a 500', () => {
    expect(renderError(Object.assign(new Error('upstream'), { statusCode: 404, code: 'UND_ERR_RESPONSE' }), problem).status).toBe(500);
  });

  test('a map function that throws, or a body that cannot be serialised, is still answered', () => {
    const maps = [
      errors().on(OutOfStock, {
        status: 409,
        code: 'out_of_stock',
        detail: () => {
          throw new Error(secret);
        },
      }),
    ];
    expect(bodyOf(new OutOfStock('x'), { ...problem, maps })).toMatchObject({ code: 'internal_error' });
    expect(bodyOf(coreErrors.conflict({ extensions: { amount: 1n } }))).toMatchObject({ code: 'internal_error' });
  });
});

describe('error maps', () => {
  test('the nearest map wins: operation, then controller, then version, then app', () => {
    const maps = ['operation', 'controller', 'version', 'app'].map((code) => errors().on(OutOfStock, { status: 409, code }));
    for (let from = 0; from < maps.length; from += 1) {
      expect(bodyOf(new OutOfStock('x'), { ...problem, maps: maps.slice(from) })).toMatchObject({
        code: ['operation', 'controller', 'version', 'app'][from],
      });
    }
  });

  test('within one map the most specific class wins, in whatever order it was given', () => {
    const one = errors().on(OutOfStock, { status: 409, code: 'wide' }).on(SoldOutForever, { status: 410, code: 'narrow' });
    const other = errors().on(SoldOutForever, { status: 410, code: 'narrow' }).on(OutOfStock, { status: 409, code: 'wide' });
    for (const map of [one, other]) {
      expect(bodyOf(new SoldOutForever('x'), { ...problem, maps: [map] })).toMatchObject({ code: 'narrow', status: 410 });
      expect(bodyOf(new OutOfStock('x'), { ...problem, maps: [map] })).toMatchObject({ code: 'wide' });
      expect(map.ruleFor(SoldOutForever)?.code).toBe('narrow');
    }
  });

  test('a rule gives detail, extra members and headers from the error; its message is never sent', () => {
    const map = errors().on(OutOfStock, {
      status: 409,
      code: 'out_of_stock',
      detail: ({ left }) => `${left} left.`,
      body: ({ left }) => ({ left }),
      headers: { 'retry-after': '60' },
    });
    const rendered = renderError(new OutOfStock('row 17 of stock_levels'), { ...problem, maps: [map] });
    expect(JSON.parse(rendered.body)).toMatchObject({ detail: '2 left.', left: 2 });
    expect(rendered.headers['retry-after']).toBe('60');
    expect(rendered.body).not.toContain('stock_levels');
  });

  test('a map can take over an error of the toolkit', () => {
    const maps = [errors().on(KitError, { status: 418, code: 'teapot' })];
    expect(renderError(coreErrors.not_found(), { ...problem, maps }).status).toBe(418);
  });

  test('a status that is not an error is refused when the map is written', () => {
    expect(() => errors().on(OutOfStock, { status: 200, code: 'fine' })).toThrow('from 400 to 599');
  });
});
