import { expect, test } from 'vitest';
import { startProgress } from './progress.ts';

function stream(isTTY: boolean): { stderr: NodeJS.WriteStream; text: () => string } {
  let text = '';
  const stderr = { isTTY, write: (chunk: string) => Boolean((text += chunk)) } as unknown as NodeJS.WriteStream;
  return { stderr, text: () => text };
}

test('on a terminal one line redraws itself and ends complete', () => {
  const { stderr, text } = stream(true);
  const progress = startProgress('Importing', 4, { stderr });
  for (let i = 0; i < 4; i += 1) progress.advance();
  progress.end();
  progress.end();
  expect(text().split('\r').at(1)).toBe('Importing [........................] 0/4');
  expect(text().split('\r').at(-1)).toBe('Importing [########################] 4/4\n');
});

test('in a log there is a line at the start and one at the end', () => {
  const { stderr, text } = stream(false);
  const progress = startProgress('Importing', 2, { stderr });
  progress.advance(2);
  progress.end();
  expect(text()).toBe('Importing: 2 to do\nImporting: 2 done\n');
});
