import * as vm from 'node:vm';
import { expect, test, vi } from 'vitest';
import { compileRule } from './sops-rules.ts';

vi.mock('node:vm', { spy: true });

const keys = new Set(['password', 'currency']);

test('a pattern is not refused where the machine gave the process no time', () => {
  vi.mocked(vm.runInNewContext).mockImplementationOnce(() => {
    throw Object.assign(new Error('Script execution timed out after 100ms'), { code: 'ERR_SCRIPT_EXECUTION_TIMEOUT' });
  });
  const isEncrypted = compileRule({ name: 'encrypted_regex', pattern: '^pass' }, keys);
  expect(['password', 'currency'].map((key) => isEncrypted?.([key]))).toEqual([true, false]);
});

test('a pattern that backtracks without end is refused within moments', () => {
  const started = performance.now();
  expect(compileRule({ name: 'encrypted_regex', pattern: '^(a+)+$' }, new Set([`${'a'.repeat(60)}!`]))).toBeUndefined();
  expect(performance.now() - started).toBeLessThan(20_000);
});

test('a pattern that is not valid is refused', () => {
  expect(compileRule({ name: 'encrypted_regex', pattern: '(' }, keys)).toBeUndefined();
});
