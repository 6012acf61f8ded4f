import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { commentExamples, exampleShop } from './docs/comment-examples.ts';
import { codeBlocks, pages, root, titleOf } from './docs/pages.ts';

const folder = join(root, 'node_modules', '.cache', 'docs-blocks');
/** Files of the program, by the place of the code that they have. */
const places = new Map<string, string>();
let faults: readonly string[] = [];

function add(file: string, place: string, text: string): void {
  mkdirSync(dirname(join(folder, file)), { recursive: true });
  writeFileSync(join(folder, file), text);
  places.set(file, place);
}

// A block marked `fragment` shows a few lines out of context and is not compiled. Blocks marked `continues` are
// appended to the block before them on the page, so that a guide can build up one file. Blocks with a title are files
// of that name, which other blocks of the page may import.
function addPages(): void {
  for (const page of pages()) {
    const pageFolder = page.replaceAll(/\W/g, '_');
    let file = '';
    let text = '';
    for (const block of codeBlocks(page).filter(
      ({ language, flags }) => (language === 'ts' || language === 'tsx') && !flags.includes('fragment'),
    )) {
      if (block.flags.includes('continues')) text += `\n${block.text}`;
      else {
        file = join(pageFolder, titleOf(block) ?? `line_${block.line}.${block.language}`);
        text = block.text;
      }
      add(file, `${page}:${block.line}`, `${text}\nexport {};\n`);
    }
  }
}

// One program for pages and comments: most of the time of a run goes into the toolkit's own types.
beforeAll(() => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  addPages();
  add('comments/example-shop.ts', 'test/docs/example-shop.ts', readFileSync(exampleShop, 'utf8'));
  for (const { place, module } of commentExamples()) add(join('comments', `${place.replaceAll(/\W/g, '_')}.ts`), place, module);
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      extends: join(root, 'tsconfig.base.json'),
      compilerOptions: {
        noEmit: true,
        noUnusedLocals: false,
        noUnusedParameters: false,
        jsx: 'preserve',
        typeRoots: [join(root, 'node_modules/@types')],
      },
      include: ['**/*.ts', '**/*.tsx'],
    }),
  );
  // One checker, beside other tests: four, the default, check what they share four times.
  const args = ['-p', folder, '--pretty', 'false', '--checkers', '1'];
  const tsc = spawnSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), ...args], { encoding: 'utf8' });
  faults = tsc.stdout
    .split('\n')
    .filter((line) => line.includes('error TS'))
    .map((line) => line.replaceAll(/(?:\S*\/)?((?:\w+_md|comments)\/[\w./]+\.tsx?)/g, (all, file: string) => places.get(file) ?? all));
});

const isOfComment = (fault: string): boolean => /^packages\/[\w-]+\/src\//.test(fault);

test('every TypeScript block of every page compiles against the public exports', () => {
  expect([...places.values()].filter((place) => place.includes('.md:')).length).toBeGreaterThan(100);
  expect(faults.filter((fault) => !isOfComment(fault))).toEqual([]);
});

test('every example in a comment compiles against the public exports', () => {
  // That they are found: fewer is a fault of this test.
  expect([...places.values()].filter(isOfComment).length).toBeGreaterThan(60);
  expect(faults.filter(isOfComment)).toEqual([]);
});
