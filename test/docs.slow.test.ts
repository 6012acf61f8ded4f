import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { codeBlocks, pages, root, titleOf } from './docs/pages.ts';

// A block marked `fragment` shows a few lines out of context and is not compiled. Blocks marked `continues` are
// appended to the block before them on the page, so that a guide can build up one file. Blocks with a title are files
// of that name, which other blocks of the page may import.
test('every TypeScript block of every page compiles against the public exports', () => {
  const folder = join(root, 'node_modules', '.cache', 'docs-blocks');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const places = new Map<string, string>();
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
      mkdirSync(dirname(join(folder, file)), { recursive: true });
      writeFileSync(join(folder, file), `${text}\nexport {};\n`);
      places.set(file, `${page}:${block.line}`);
    }
  }
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
  expect(places.size).toBeGreaterThan(0);
  const tsc = spawnSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', folder, '--pretty', 'false'], {
    encoding: 'utf8',
  });
  const faults = tsc.stdout
    .split('\n')
    .filter((line) => line.includes('error TS'))
    .map((line) => line.replaceAll(/(?:\S*\/)?(\w+_md\/[\w./]+\.tsx?)/g, (all, file: string) => places.get(file) ?? all));
  expect(faults).toEqual([]);
});
