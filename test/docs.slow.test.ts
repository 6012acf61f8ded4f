import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { codeBlocks, pages, root } from './docs/pages.ts';

// A block marked `fragment` shows a few lines out of context and is not compiled. Blocks marked `continues` are
// appended to the block before them on the page, so that a guide can build up one file.
test('every TypeScript block of every page compiles against the public exports', () => {
  const folder = join(root, 'node_modules', '.cache', 'docs-blocks');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const places = new Map<string, string>();
  for (const page of pages()) {
    let file = '';
    let text = '';
    for (const block of codeBlocks(page).filter(
      ({ language, flags }) => (language === 'ts' || language === 'tsx') && !flags.includes('fragment'),
    )) {
      if (block.flags.includes('continues')) text += `\n${block.text}`;
      else {
        file = `${page.replaceAll(/\W/g, '_')}_${block.line}.${block.language}`;
        text = block.text;
      }
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
      include: ['*.ts', '*.tsx'],
    }),
  );
  expect(places.size).toBeGreaterThan(0);
  const tsc = spawnSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', folder, '--pretty', 'false'], {
    encoding: 'utf8',
  });
  const faults = tsc.stdout
    .split('\n')
    .filter((line) => line.includes('error TS'))
    .map((line) => line.replaceAll(/(?:\S*\/)?([\w]+_md_\d+\.tsx?)/g, (all, file: string) => places.get(file) ?? all));
  expect(faults).toEqual([]);
});
