import { expect, test } from 'vitest';
import type { HandlerContext } from './handler-context.ts';
import { handlerAtOnce, promising } from './handler-at-once.ts';

const context = {} as HandlerContext;

test('who wraps a handler gets a promise, also where the value is there at once or the handler throws', async () => {
  const handler = promising((_context: HandlerContext) => 1);
  expect(handler(context)).toBeInstanceOf(Promise);
  expect(await handler(context)).toBe(1);
  const failing = promising((_context: HandlerContext): number => {
    throw new Error('no');
  });
  await expect(failing(context)).rejects.toThrow('no');
});

test('the pipeline gets the value at once', () => {
  expect(handlerAtOnce(promising((_context: HandlerContext) => 1))(context)).toBe(1);
});

test('a handler in the place of another is called itself', () => {
  const inherited = promising((_context: HandlerContext) => 'inherited');
  const own = (given: HandlerContext) => inherited(given).then((text) => `own ${text}`);
  expect(handlerAtOnce(own)).toBe(own);
});
