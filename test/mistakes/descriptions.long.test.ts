import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { API, SymbolFlags } from 'typescript/unstable/sync';
import { expect, test } from 'vitest';
import { root } from '../architecture/module-graph.ts';

const config = join(import.meta.dirname, 'exports.tsconfig.json');

/** Functions, classes and constants that the package exports and that an editor shows without a description. */
function undescribed(): string[] {
  const kit = join(root, 'packages', 'kit');
  const { exports } = JSON.parse(readFileSync(join(kit, 'package.json'), 'utf8')) as {
    exports: Record<string, { source: string } | string>;
  };
  const api = new API({ cwd: root });
  try {
    const project = api.updateSnapshot({ openProjects: [config] }).getProject(config);
    if (project === undefined) throw new Error(`${config} cannot be opened.`);
    const { checker, program } = project;
    const missing = Object.entries(exports).flatMap(([subpath, target]) => {
      const file = typeof target === 'string' ? undefined : program.getSourceFile(join(kit, target.source));
      const module = file === undefined ? undefined : checker.getSymbolAtLocation(file);
      if (module === undefined) return [];
      return checker.getExportsOfModule(module).flatMap((exported) => {
        const symbol = (exported.flags & SymbolFlags.Alias) === 0 ? exported : checker.getAliasedSymbol(exported);
        // Kysely's own, under another name.
        if (exported.name === 'sqlFragment') return [];
        const isValue = (symbol.flags & SymbolFlags.Value) !== 0;
        return isValue && checker.getDocumentationCommentOfSymbol(symbol) === '' ? [`${subpath} ${exported.name}`] : [];
      });
    });
    return missing;
  } finally {
    api.close();
  }
}

test('every exported function, class and constant has a description', () => {
  expect(undescribed()).toEqual([]);
});
