import { expect, test } from 'vitest';
import { defineErrors, errorCatalogs, isErrorDefinition } from './catalog.ts';
import { coreErrors } from './core-errors.ts';
import { isKitError, KitError } from './kit-error.ts';

test('a definition makes an error of its code and status, with a better sentence where the place has one', () => {
  const error = coreErrors.not_found({ detail: 'No such order.', message: 'order 7 of tenant 3' });
  expect(error).toBeInstanceOf(KitError);
  expect(error).toMatchObject({ code: 'not_found', status: 404, detail: 'No such order.', message: 'order 7 of tenant 3' });
  expect(coreErrors.not_found().detail).toBe('Not found.');
  expect(isErrorDefinition(coreErrors.conflict)).toBe(true);
});

test('an error of another copy of the package is recognized by its mark, not by its class', () => {
  const foreign = Object.assign(new Error('x'), { isKitError: true, code: 'not_found', status: 404, detail: 'Gone.' });
  expect(isKitError(foreign)).toBe(true);
  expect(isKitError(foreign, 'not_found')).toBe(true);
  expect(isKitError(Object.assign(new Error('x'), { code: 'not_found', status: 404, detail: 'Gone.' }))).toBe(false);
  expect(isKitError(null)).toBe(false);
});

test('every declared catalog is listed, each module once', () => {
  const sample = defineErrors('catalog_test', { out_of_stock: { status: 409, detail: 'Nothing left.' } });
  defineErrors('catalog_test', { out_of_stock: { status: 409, detail: 'Nothing left.' } });
  const modules = errorCatalogs().map(({ module }) => module);
  expect(modules.filter((module) => module === 'catalog_test')).toHaveLength(1);
  expect(modules).toContain('core');
  expect(sample.out_of_stock.title).toBe('Out of stock');
});

test('a code that is not snake_case, or a status that is not an error, is refused when declared', () => {
  expect(() => defineErrors('bad', { OutOfStock: { status: 409, detail: 'x' } })).toThrow('must be snake_case');
  expect(() => defineErrors('bad', { fine: { status: 200, detail: 'x' } })).toThrow('from 400 to 599');
});
