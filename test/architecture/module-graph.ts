import { globSync, readFileSync } from 'node:fs';
import { dirname, relative, resolve, sep } from 'node:path';
import { parseSync } from 'oxc-parser';

/** One source file: what it imports, exports and reads. Paths are relative to the repository root, with `/`. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
  /** Files of this repository it imports; type-only imports count, because readers follow them too. */
  readonly imports: readonly string[];
  /** Packages and built-ins it imports, as written. */
  readonly packages: readonly string[];
  readonly exports: readonly string[];
}

export const root = resolve(import.meta.dirname, '..', '..');

/** Every TypeScript source of the published packages, tests left out. */
export function readSources(): Map<string, SourceFile> {
  const paths = globSync('packages/*/src/**/*.{ts,tsx}', { cwd: root, exclude: ['**/node_modules/**'] })
    .map((path) => path.split(sep).join('/'))
    .filter((path) => !/\.test\.tsx?$/.test(path))
    .sort();
  return new Map(paths.map((path) => [path, readSource(path)]));
}

export function readSource(path: string, text = readFileSync(resolve(root, path), 'utf8')): SourceFile {
  const { module, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  const specifiers = [
    ...module.staticImports.map((entry) => entry.moduleRequest.value),
    ...module.staticExports.flatMap((entry) => entry.entries.map((e) => e.moduleRequest?.value).filter((value) => value !== undefined)),
    ...module.dynamicImports
      .map((entry) => literal(text.slice(entry.moduleRequest.start, entry.moduleRequest.end)))
      .filter((value) => value !== undefined),
  ];
  const local = specifiers.filter((specifier) => specifier.startsWith('.'));
  return {
    path,
    text,
    imports: [
      ...new Set(
        local.map((specifier) =>
          relative(root, resolve(root, dirname(path), specifier))
            .split(sep)
            .join('/'),
        ),
      ),
    ],
    packages: [...new Set(specifiers.filter((specifier) => !specifier.startsWith('.')))],
    exports: module.staticExports
      .flatMap((entry) => entry.entries.map((e) => e.exportName.name ?? (text.startsWith('export default', entry.start) ? 'default' : '*')))
      .sort(),
  };
}

function literal(source: string): string | undefined {
  return /^(['"`])([^'"`$]+)\1$/.exec(source.trim())?.[2];
}

/** The first import cycle found, as the list of files along it; undefined when there is none. */
export function findCycle(sources: ReadonlyMap<string, Pick<SourceFile, 'imports'>>): string[] | undefined {
  const settled = new Set<string>();
  const visit = (path: string, trail: string[]): string[] | undefined => {
    const at = trail.indexOf(path);
    if (at >= 0) return [...trail.slice(at), path];
    if (settled.has(path)) return undefined;
    for (const next of sources.get(path)?.imports ?? []) {
      const cycle = visit(next, [...trail, path]);
      if (cycle !== undefined) return cycle;
    }
    settled.add(path);
    return undefined;
  };
  for (const path of sources.keys()) {
    const cycle = visit(path, []);
    if (cycle !== undefined) return cycle;
  }
  return undefined;
}
