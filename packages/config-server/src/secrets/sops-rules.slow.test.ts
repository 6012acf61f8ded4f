import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { compileRule } from './sops-rules.ts';

/** Compiles one rule again and again, a few milliseconds each, for half a second of its own time, and prints how many were refused. */
const COMPILING = `
const { compileRule } = await import(process.argv[1]);
const keys = new Set(Array.from({ length: 5_000 }, (_, index) => 'key_' + index));
let refused = 0;
while (process.cpuUsage().user < 500_000) if (compileRule({ name: 'encrypted_regex', pattern: '^key_1' }, keys) === undefined) refused += 1;
console.log(refused);
`;

test('a pattern is not refused where the machine gives the process no time', async () => {
  const rules = join(import.meta.dirname, 'sops-rules.ts');
  const child = spawn(process.execPath, ['--input-type=module', '-e', COMPILING, rules], { stdio: ['ignore', 'pipe', 'inherit'] });
  let printed = '';
  child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  const closed = once(child, 'close');
  while (child.exitCode === null) {
    child.kill('SIGSTOP');
    await sleep(150);
    child.kill('SIGCONT');
    await sleep(50);
  }
  await closed;
  expect(printed.trim()).toBe('0');
});

test('a pattern that backtracks without end, or is not valid, is refused', () => {
  expect(compileRule({ name: 'encrypted_regex', pattern: '^(a+)+$' }, new Set([`${'a'.repeat(60)}!`]))).toBeUndefined();
  expect(compileRule({ name: 'encrypted_regex', pattern: '(' }, new Set(['a']))).toBeUndefined();
});
