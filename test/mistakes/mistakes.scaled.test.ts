import { pathToFileURL } from 'node:url';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { scaled } from '../provision/scale.ts';
import { typeScript59, typeScript7 } from './compilers.ts';
import { compileMistakes, groups, type Mistake, mistakesOf } from './mistakes.ts';

const AT_STARTUP = 'at startup';

/** Type arguments that take more than a glance, without their content: it changes with every column of the models here. */
function shortened(message: string): string {
  const ends: number[] = [];
  let text = message.replaceAll(/and \d+ more/g, 'and … more').replaceAll(/\.\.\. \d+ more \.\.\./g, '…');
  for (let at = text.length - 1; at >= 0; at -= 1) {
    if (text[at] === '>' && text[at - 1] !== '=') ends.push(at);
    else if (text[at] === '<') {
      const end = ends.pop();
      if (end !== undefined && end - at > 60) text = `${text.slice(0, at)}<…>${text.slice(end + 1)}`;
      // What was cut out was inside of the ends that are left: they moved.
      if (end !== undefined && end - at > 60) for (const index of ends.keys()) ends[index] = (ends[index] as number) - (end - at - 2);
    }
  }
  return text;
}

/** What an editor shows of a mistake: the text it underlines, and the first line of the message. */
function shown({ title, errors }: Mistake): string {
  const lines = errors.map(({ marked, code, message }) => `  ${marked.split('\n')[0]} — TS${code} ${shortened(message)}`);
  return [title, ...lines].join('\n');
}

// Our compiler in every run; the one before it, which takes ten times as long, in full runs.
describe.each([typeScript7, typeScript59].slice(0, scaled(1, 2)))('mistakes in an application, under $name', (compiler) => {
  const mistakes = compileMistakes(compiler);

  test('there are more than 200 of them', () => {
    expect(mistakes.length).toBeGreaterThanOrEqual(200);
    expect(new Set(mistakes.map(({ group, title }) => `${group}: ${title}`)).size).toBe(mistakes.length);
  });

  test('each is marked where it was made, unless only startup can find it', () => {
    const elsewhere = mistakes.filter(({ marked, errors }) =>
      marked === AT_STARTUP ? errors.length > 0 : !errors.some((error) => error.marked === marked),
    );
    expect(elsewhere.map(shown)).toEqual([]);
  });

  test.each(groups.map((file) => basename(file, '.ts')))('the messages of %s are as they are known', async (group) => {
    const messages = mistakes.filter((each) => each.group === group && each.marked !== AT_STARTUP).map(shown);
    await expect(`${messages.join('\n\n')}\n`).toMatchFileSnapshot(
      `cases/${group}.${compiler.name.replaceAll(' ', '-').toLowerCase()}.txt`,
    );
  });
});

/** `scores.md`: the judged score of each mistake, by group and title. */
function scores(): Map<string, Map<string, number>> {
  const sections = readFileSync(join(import.meta.dirname, 'scores.md'), 'utf8')
    .split(/^## /m)
    .slice(1);
  return new Map(
    sections.map((section) => {
      const rows = [...section.matchAll(/^\| ([0-3]) \| (.+?) \| /gm)].map(([, score, title]) => [title!, Number(score)] as const);
      return [section.split('\n', 1)[0]!, new Map(rows)];
    }),
  );
}

test.each(groups)('every mistake of %s is judged, none is reported nowhere, and their mean is at least 2.7', (file) => {
  const judged = scores().get(basename(file, '.ts')) ?? new Map<string, number>();
  expect([...judged.keys()]).toEqual(mistakesOf(file, []).map(({ title }) => title));
  const given = [...judged.values()];
  expect(given.filter((score) => score === 0)).toEqual([]);
  expect(given.reduce((sum, score) => sum + score, 0) / given.length).toBeGreaterThanOrEqual(2.7);
});

test('what the compiler cannot see fails when it is declared, or when the app is created', async () => {
  const messages: string[] = [];
  for (const file of groups) {
    const module = (await import(pathToFileURL(file).href)) as Readonly<Record<string, () => unknown>>;
    for (const { title, marked, name } of mistakesOf(file, []))
      if (marked === AT_STARTUP)
        try {
          module[name]?.();
          messages.push(`${title}\n  nothing`);
        } catch (error) {
          messages.push(`${title}\n  ${(error as Error).message.split('\n').join('\n  ')}`);
        }
  }
  await expect(`${messages.join('\n\n')}\n`).toMatchFileSnapshot('cases/at-startup.txt');
  expect(messages.filter((message) => message.endsWith('nothing'))).toEqual([]);
});
