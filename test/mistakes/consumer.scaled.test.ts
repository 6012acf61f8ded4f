import { cpSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { root } from '../architecture/module-graph.ts';
import { scaled } from '../provision/scale.ts';
import { typeScript59, typeScript7 } from './compilers.ts';

const folder = join(root, 'packages', 'kit', '.data', `consumer-${process.pid}`);
const config = join(folder, 'tsconfig.json');
const file = join(folder, 'app.ts');

/** An application with the package in its `node_modules`: other files than those that `exports` has cannot be named from there. */
beforeAll(() => {
  const kit = join(folder, 'node_modules', 'kit');
  mkdirSync(kit, { recursive: true });
  symlinkSync(join(root, 'packages', 'kit', 'src'), join(kit, 'src'), 'dir');
  cpSync(join(root, 'packages', 'kit', 'package.json'), join(kit, 'package.json'));
  cpSync(join(import.meta.dirname, 'consumer', 'app.ts'), file);
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  const compilerOptions = {
    target: 'es2024',
    lib: ['es2024', 'esnext.disposable', 'esnext.iterator'],
    module: 'nodenext',
    types: ['node'],
    strict: true,
    composite: true,
    declaration: true,
    emitDeclarationOnly: true,
    outDir: 'dist',
    skipLibCheck: true,
    customConditions: ['source'],
    preserveSymlinks: true,
    allowImportingTsExtensions: true,
  };
  writeFileSync(config, JSON.stringify({ compilerOptions, files: ['app.ts'] }));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

// The older compiler needs seconds where ours needs one: in full runs only.
test.each([typeScript7, typeScript59].slice(0, scaled(1, 2)))(
  'an application with `composite` exports its models, resources, controllers and modules without annotations: $name',
  ({ errors, declarationErrors }) => {
    expect(errors(config, [file])).toEqual([]);
    expect(declarationErrors(config, [file])).toEqual([]);
  },
  300_000,
);
