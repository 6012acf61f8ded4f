import { describe, expect, test } from 'vitest';
import { commandFaults, kitFaults } from './docs/check-commands.ts';
import { codeBlocks, pages, read } from './docs/pages.ts';
import { commandLines, readyWhen, simpleCommands } from './docs/shell-commands.ts';

const blocks = pages().flatMap((page) => codeBlocks(page));
const place = ({ page, line }: { page: string; line: number }): string => `${page}:${line}`;

// `sh` blocks are run by docs-shell.scaled.test.ts, those marked `tour` by the example's own test.
test('a block for the shell is called sh, so that it is run, and has known marks only', () => {
  expect(blocks.filter(({ language }) => ['', 'bash', 'shell', 'console', 'zsh'].includes(language)).map(place)).toEqual([]);
  const marks = blocks.filter(({ language }) => language === 'sh').flatMap(({ flags }) => flags);
  expect(new Set(marks)).toEqual(new Set(['not-run', 'tour']));
});

test('what a page cannot run here names programs, options, scripts, variables and files that exist', async () => {
  const marked = blocks.filter(({ language, flags }) => language === 'sh' && flags.includes('not-run'));
  expect(marked.length).toBeGreaterThan(10);
  const faults = await Promise.all(
    marked.map(async (block) => (await commandFaults(block.text)).map((fault) => `${place(block)}: ${fault}`)),
  );
  expect(faults.flat()).toEqual([]);
});

test('a command of kit in a sentence exists, with the options it is given', async () => {
  const sentences = pages().flatMap((page) =>
    [...read(page).matchAll(/`(?:npx )?kit ([a-z][^`\n]*)`/g)].map(([, command = '']) => ({ page, command })),
  );
  expect(sentences.length).toBeGreaterThan(20);
  const faults = await Promise.all(
    sentences.map(async ({ page, command }) => {
      const words = command.split(/\s+/).filter((word) => !/^[<…"$[]/.test(word));
      return (await kitFaults(words)).map((fault) => `${page}: ${fault}`);
    }),
  );
  expect(faults.flat()).toEqual([]);
});

describe('faults are found', () => {
  test.each([
    ['npm run nothing', 'npm run nothing: no such script'],
    ['npm run bench -- nothing --save', 'there is no benchmark nothing'],
    ['KIT_NOTHING=1 npm test', 'the variable KIT_NOTHING is not read anywhere'],
    ['npx vitest run packages/nothing', 'packages/nothing does not exist'],
    ['npx kit webhoks stats', 'kit webhoks: no such command'],
    ['docker compose exec api kit --config /app/kit.config.ts webhooks nothing', 'kit webhooks nothing: no such command'],
    ['kit webhooks stats --promtheus > file && mv file other', 'kit webhooks stats has no option --promtheus'],
    ['config-server --chek server.toml', 'config-server has no option --chek'],
    ['npx config-secrets encrypt --recipent age1x', 'config-secrets has no option --recipent'],
    ['systemctl start orders-worker@1 orders-nothing', 'orders-nothing: no unit of deploy/systemd'],
    ['podman run it', 'podman: no program this page may take for granted'],
  ])('%s', async (command, fault) => {
    expect(await commandFaults(command)).toEqual([fault]);
  });
});

test('lines are joined without comments; a program that serves is distinguished from one that ends', () => {
  expect(commandLines('a \\\n  -b   # why\n\n# alone\nc')).toEqual(['a -b', 'c']);
  expect(simpleCommands('A=1 a "b c" && d > e | f')).toEqual([
    { variables: ['A'], words: ['a', 'b c'] },
    { variables: [], words: ['d'] },
    { variables: [], words: ['f'] },
  ]);
  for (const line of ['npx kit start --port 80', 'kit start &', 'npx config-server a.toml', 'kit webhooks deliver --loop'])
    expect([line, readyWhen(line)]).toEqual([line, expect.any(RegExp)]);
  for (const line of ['npx kit migrate', 'config-server --check a.toml', 'kit webhooks deliver'])
    expect([line, readyWhen(line)]).toEqual([line, undefined]);
});
