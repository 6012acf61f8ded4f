import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { readSecret } from './secret-input.ts';
import type { Terminal } from './terminal.ts';

function terminal(isTTY: boolean): { terminal: Terminal; stdin: PassThrough; shown: () => string } {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  let shown = '';
  for (const stream of [stdout, stderr]) stream.on('data', (chunk: Buffer) => (shown += chunk.toString()));
  Object.assign(stdin, { isTTY });
  return { terminal: { stdin, stdout, stderr } as unknown as Terminal, stdin, shown: () => shown };
}

test('in a pipe the secret is the first line, with or without its end', async () => {
  for (const text of ['s3cret words\n', 's3cret words', 's3cret words\r\nmore\n']) {
    const { terminal: pipe, stdin } = terminal(false);
    stdin.end(text);
    expect(await readSecret('Password', pipe)).toBe('s3cret words');
  }
});

test('an empty pipe is refused with a sentence', async () => {
  const { terminal: pipe, stdin } = terminal(false);
  stdin.end();
  await expect(readSecret('Password', pipe)).rejects.toThrow('Password expected on standard input, which is empty.');
});

test('on a terminal it is asked for twice and never shown', async () => {
  const { terminal: tty, stdin, shown } = terminal(true);
  const secret = readSecret('Password', tty);
  stdin.write('s3cret words\r');
  await expect.poll(shown).toContain('again');
  stdin.write('s3cret words\r');
  expect(await secret).toBe('s3cret words');
  expect(shown()).toBe('Password: \nPassword again: \n');
});

test('two different inputs are refused', async () => {
  const { terminal: tty, stdin, shown } = terminal(true);
  const secret = readSecret('Password', tty);
  stdin.write('one thing\r');
  await expect.poll(shown).toContain('again');
  stdin.write('another\r');
  await expect(secret).rejects.toThrow('The two inputs differ');
});
