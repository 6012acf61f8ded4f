import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { loadTypeScript59 } from './compilers.ts';
import { config } from './mistakes.ts';

/**
 * What an editor shows in `cases/editor.ts`. A line `//            ^? name` asks for the hover of the text above the caret, `^|` for the
 * completions there. TypeScript's language service, which editors use, answers.
 */
const file = join(import.meta.dirname, 'cases', 'editor.ts');
const COMPLETIONS_SHOWN = 12;

const answers: string[] = [];
beforeAll(() => {
  const ts = loadTypeScript59();
  const { options, fileNames } = ts.parseJsonConfigFileContent(
    ts.readConfigFile(config, (path) => ts.sys.readFile(path)).config,
    ts.sys,
    dirname(config),
  );
  const service = ts.createLanguageService({
    getCompilationSettings: () => options,
    getScriptFileNames: () => fileNames,
    getScriptVersion: () => '1',
    getScriptSnapshot: (path) => {
      const text = ts.sys.readFile(path);
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
    },
    getCurrentDirectory: () => dirname(config),
    getDefaultLibFileName: (given) => ts.getDefaultLibFilePath(given),
    fileExists: (path) => ts.sys.fileExists(path),
    readFile: (path) => ts.sys.readFile(path),
    readDirectory: (...given) => ts.sys.readDirectory(...given),
    directoryExists: (path) => ts.sys.directoryExists(path),
    getDirectories: (path) => ts.sys.getDirectories(path),
  });
  const lines = readFileSync(file, 'utf8').split('\n');
  let offset = 0;
  let above = { start: 0, text: '' };
  for (const line of lines) {
    const asked = /^ *\/\/ *\^([?|]) (.+)$/.exec(line);
    if (asked === null) above = { start: offset, text: line };
    else {
      const position = above.start + line.indexOf('^');
      answers.push(`${asked[2]}\n${asked[1] === '?' ? hover(position) : completions(position)}`);
    }
    offset += line.length + 1;
  }

  function hover(position: number): string {
    const info = service.getQuickInfoAtPosition(file, position);
    const documentation = ts.displayPartsToString(info?.documentation);
    return indented(`${ts.displayPartsToString(info?.displayParts)}${documentation === '' ? '' : `\n— ${documentation}`}`);
  }

  function completions(position: number): string {
    const entries = service.getCompletionsAtPosition(file, position, undefined)?.entries ?? [];
    // Names from the scope (globals, keywords) come after those of the type.
    const names = entries.filter(({ sortText }) => sortText <= '12').map(({ name }) => name);
    const more = names.length > COMPLETIONS_SHOWN ? ` … ${names.length} in all` : '';
    return indented(names.slice(0, COMPLETIONS_SHOWN).join(', ') + more);
  }
}, 300_000);

function indented(text: string): string {
  return text.replaceAll(/^/gm, '  ');
}

test('hovers show values, members and a description; completions show the names that fit', async () => {
  await expect(`${answers.join('\n\n')}\n`).toMatchFileSnapshot('cases/editor.txt');
});

test('every hover of an export has a description, and every completion has entries', () => {
  expect(answers.filter((answer) => answer.endsWith('\n  '))).toEqual([]);
  expect(answers.filter((answer) => answer.startsWith('export: ') && !answer.includes('\n  — '))).toEqual([]);
});
