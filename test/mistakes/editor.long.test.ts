import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { API, SymbolFlags } from 'typescript/unstable/sync';
import { beforeAll, expect, test } from 'vitest';
import { loadTypeScript59 } from './compilers.ts';
import { config } from './mistakes.ts';

/**
 * What an editor shows in `cases/editor.ts`. A line `//            ^? name` asks for the hover of the text above the caret, `^|` for the
 * completions there. TypeScript's language service, which editors use, answers.
 */
const file = join(import.meta.dirname, 'cases', 'editor.ts');
const COMPLETIONS_SHOWN = 12;

interface Question {
  readonly kind: 'hover' | 'completions';
  readonly title: string;
  readonly position: number;
}

function questions(): Question[] {
  const found: Question[] = [];
  let offset = 0;
  let above = 0;
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    const asked = /^ *\/\/ *\^([?|]) (.+)$/.exec(line);
    if (asked === null) above = offset;
    else found.push({ kind: asked[1] === '?' ? 'hover' : 'completions', title: asked[2]!, position: above + line.indexOf('^') });
    offset += line.length + 1;
  }
  return found;
}

/** TypeScript 7 has no names of the scope in this list, and no order: they are sorted. */
function answersOfTypeScript7(): string[] {
  const api = new API({ cwd: dirname(config) });
  try {
    const project = api.updateSnapshot({ openProjects: [config] }).getProject(config);
    if (project === undefined) throw new Error(`${config} cannot be opened.`);
    const { checker } = project;
    const hoverOf = (position: number): string => {
      const [type, symbol] = [checker.getTypeAtPosition(file, position), checker.getSymbolAtPosition(file, position)];
      const meant = symbol === undefined || (symbol.flags & SymbolFlags.Alias) === 0 ? symbol : checker.getAliasedSymbol(symbol);
      const documentation = meant === undefined ? '' : checker.getDocumentationCommentOfSymbol(meant);
      return `${type === undefined ? '' : checker.typeToString(type)}${documentation === '' ? '' : `\n— ${documentation}`}`;
    };
    const completionsOf = (position: number): string => {
      try {
        const names = (checker.getCompletionsAtPosition(file, position)?.entries ?? []).map(({ name }) => name).toSorted();
        return names.slice(0, COMPLETIONS_SHOWN).join(', ') + (names.length > COMPLETIONS_SHOWN ? ` … ${names.length} in all` : '');
      } catch (error) {
        // Of TypeScript 7.0: where a list would also offer names to import, its API has none.
        if (!String(error).includes('needs auto imports')) throw error;
        return '(no list: it would offer names to import)';
      }
    };
    return questions().map(({ kind, title, position }) =>
      [title, indented(kind === 'hover' ? hoverOf(position) : completionsOf(position))].join('\n'),
    );
  } finally {
    api.close();
  }
}

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
  for (const { kind, title, position } of questions())
    answers.push(`${title}\n${kind === 'hover' ? hover(position) : completions(position)}`);

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

// 680 to 815 characters of type parameters stood above the descriptions of four exports.
test('the type of an export takes at most 350 characters of its hover', () => {
  const types = answers.filter((answer) => answer.startsWith('export: ')).map((answer) => answer.split('\n  — ')[0] ?? '');
  expect(types.filter(({ length }) => length > 350)).toEqual([]);
});

test('TypeScript 7 shows the same types, descriptions and names', async () => {
  const shown = answersOfTypeScript7();
  await expect(`${shown.join('\n\n')}\n`).toMatchFileSnapshot('cases/editor.typescript-7.0.txt');
  expect(shown.filter((answer) => answer.endsWith('\n  '))).toEqual([]);
  expect(shown.filter((answer) => answer.startsWith('export: ') && !answer.includes('\n  — '))).toEqual([]);
});
