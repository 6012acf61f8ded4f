import { expect, test } from 'vitest';
import { errorPlace } from './error-place.ts';

function withStack(stack: string): Error {
  const error = new Error('it failed');
  error.stack = stack;
  return error;
}

test('a syntax error shows its file, line and source', () => {
  const stack = `/app/src/notes.ts:4\nimport x;\nconst a = t.text(300 });\n                     ^\n\nSyntaxError [X]: Expected ','\n    at parse (node:internal/x:1:2)`;
  expect(errorPlace(withStack(stack))).toBe(`
  at /app/src/notes.ts:4
    import x;
    const a = t.text(300 });
                         ^`);
});

test('a missing export shows the import', () => {
  const stack = `file:///app/a%20b.ts:1\nimport { nope } from "./c.ts";\n         ^^^^\nSyntaxError: The requested module\n    at x (node:internal/y:1:1)`;
  expect(errorPlace(withStack(stack))).toBe('\n  at /app/a b.ts:1\n    import { nope } from "./c.ts";\n             ^^^^');
});

test('an error while a file runs shows the first line of it that is not of a package', () => {
  const stack = `TypeError: no\n    at f (file:///app/node_modules/zod/index.js:3:4)\n    at g (${new URL('../../options/read-options.ts', import.meta.url).href}:28:32)\n    at file:///app/src/notes.ts:2:23\n    at run (node:internal/x:1:1)`;
  expect(errorPlace(withStack(stack))).toBe('\n  at /app/src/notes.ts:2:23');
});

test.each([undefined, 'text', withStack('Error: only this')])('nothing is added where nothing is known: %s', (error) => {
  expect(errorPlace(error)).toBe('');
});
