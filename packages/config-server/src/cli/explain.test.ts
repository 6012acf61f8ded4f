import { expect, test } from 'vitest';
import { CLIENT_ERROR_CODES } from '../client/errors.ts';
import * as problems from '../http/problem.ts';
import { explain, FAILURES, knownCodes, PROBLEMS } from './explain.ts';

test('every code of a response is explained, and no other', () => {
  const sent = Object.values(problems).map((problem) => (JSON.parse(problem.body.toString()) as { code: string }).code);
  expect(Object.keys(PROBLEMS).sort()).toEqual([...sent].sort());
  for (const problem of Object.values(problems)) {
    const { status, code } = JSON.parse(problem.body.toString()) as { status: number; code: string };
    expect(PROBLEMS[code]?.example).toMatch(new RegExp(`^HTTP ${status}\\b`));
  }
});

test('every kind of failure, response and error of the client has a meaning, a remedy and an example', () => {
  for (const code of [FAILURES, PROBLEMS, CLIENT_ERROR_CODES].flatMap((table) => Object.keys(table)))
    expect(explain(code)).toMatch(new RegExp(`^${code}: .+\n  \\S.+\\.\n  What to do: \\S.+\\.\n  Example: \\S`));
});

test('a code that is met in two places is explained for both', () => {
  expect(explain('not-found')?.match(/^not-found: .*$/gm)).toEqual([
    'not-found: a response of the server',
    'not-found: an error of the client',
  ]);
});

test('an unknown code has no explanation, names of Object.prototype included', () => {
  for (const code of ['nothing', 'constructor', '__proto__', '']) expect(explain(code)).toBeUndefined();
  expect(knownCodes()).toContain('decrypt, reference\n');
});
