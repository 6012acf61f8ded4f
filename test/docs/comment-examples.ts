import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './pages.ts';

/** A `ts` block of a comment, as editors show it with the export that it belongs to. */
export interface CommentExample {
  /** `packages/kit/src/http/declare/page.ts:15`. */
  readonly place: string;
  /** A module: the block, and imports of the names that it uses. */
  readonly module: string;
}

const kit = join(root, 'packages', 'kit');
/** Declares what the examples leave out: the models, schemas and functions of an application. It is copied beside them. */
export const exampleShop = join(import.meta.dirname, 'example-shop.ts');

interface Exported {
  readonly specifier: string;
  readonly file: string;
  readonly isType: boolean;
}

/** The names that a file exports; true: a type. */
function namesOf(file: string): Map<string, boolean> {
  const source = readFileSync(file, 'utf8');
  const names = new Map<string, boolean>();
  for (const [, type, list] of source.matchAll(/^export (type )?\{([^}]*)\}/gm))
    for (const each of list!.split(',').filter((text) => text.trim() !== '')) {
      const [, isType, name] = /^\s*(type )?(?:\w+ as )?(\w+)\s*$/.exec(each) ?? [];
      if (name !== undefined) names.set(name, type !== undefined || isType !== undefined);
    }
  for (const [, kind, name] of source.matchAll(
    /^export (?:declare )?(?:abstract )?(?:async )?(function|const|class|interface|type) (\w+)/gm,
  ))
    names.set(name!, kind === 'interface' || kind === 'type');
  return names;
}

function exportedNames(): Map<string, Exported[]> {
  const { exports } = JSON.parse(readFileSync(join(kit, 'package.json'), 'utf8')) as {
    exports: Record<string, { source: string } | string>;
  };
  const sources = Object.entries(exports).flatMap(([subpath, target]) =>
    typeof target === 'string' ? [] : [[join('kit', subpath), join(kit, target.source)] as const],
  );
  const found = new Map<string, Exported[]>();
  for (const [specifier, file] of [...sources, ['./example-shop.ts', exampleShop] as const])
    for (const [name, isType] of namesOf(file)) found.set(name, [...(found.get(name) ?? []), { specifier, file, isType }]);
  return found;
}

/** The imports of what a block uses and does not declare. Of two exports of one name, the one whose entry point is the file of the comment. */
function importsOf(block: string, file: string, names: ReadonlyMap<string, readonly Exported[]>): string {
  const declared = new Set(
    [...block.matchAll(/^(?:export )?(?:const|class|type|function) (?:\{([^}]*)\}|(\w+))/gm)].flatMap(([, list, name]) =>
      list === undefined ? [name] : list.split(',').map((each) => each.trim()),
    ),
  );
  const used = new Set(block.replaceAll(/'[^']*'|\/\/.*/g, '').match(/(?<!\w|(?<!\.)\.)[A-Za-z]\w*/g));
  return [...used]
    .filter((name) => !declared.has(name))
    .flatMap((name) => {
      const found = names.get(name) ?? [];
      const own = found.find((each) => each.file === join(root, file)) ?? found[0];
      return own === undefined ? [] : [`import { ${own.isType ? 'type ' : ''}${name} } from '${own.specifier}';`];
    })
    .join(' ');
}

/** The examples of the toolkit's comments. Each is a module whose imports are left out. */
export function commentExamples(): CommentExample[] {
  const names = exportedNames();
  const files = globSync('packages/{kit,config-server}/src/**/*.ts', { cwd: root, exclude: (path) => path.endsWith('.test.ts') });
  return files.sort().flatMap((file) => {
    const source = readFileSync(join(root, file), 'utf8');
    return [...source.matchAll(/^ *\* ```ts\n([\s\S]*?)^ *\* ```$/gm)].map(({ 1: text = '', index }) => {
      const block = text.replaceAll(/^ *\* ?/gm, '');
      const place = `${file}:${source.slice(0, index).split('\n').length}`;
      return { place, module: `import { z } from 'zod'; ${importsOf(block, file, names)}\n${block}export {};\n` };
    });
  });
}
