import { expect, test } from 'vitest';
import { StatementTexts } from './statement-texts.ts';

test('a text is found by the parts of its shape, in their order', () => {
  const texts = new StatementTexts(10);
  const unit = {};
  texts.keep(texts.start.to(unit).to('a').to('b'), 'select 1');
  expect(texts.start.to(unit).to('a').to('b').statement).toBe('select 1');
  expect(texts.start.to(unit).to('b').to('a').statement).toBeUndefined();
  expect(texts.start.to({}).to('a').to('b').statement).toBeUndefined();
  expect(texts.size).toBe(1);
});

test('however many shapes are asked for, no more than the limit are kept', () => {
  const texts = new StatementTexts(10);
  for (let index = 0; index < 1_000; index += 1) {
    expect(texts.keep(texts.start.to(`shape ${index}`), `select ${index}`)).toBe(`select ${index}`);
    expect(texts.size).toBeLessThanOrEqual(10);
  }
  expect(texts.start.to('shape 0').statement).toBeUndefined();
});
