import { WORKSPACE_NAMES, type PublicNames } from './public-names.ts';

export type Rename = (text: string) => string;

/**
 * Puts the public names in the place of those of this repository: imports, entry points in messages and comments, and install lines. The name
 * of the program, `kit`, stays. `subpaths` are the entry points of the toolkit (`db`, `contrib/jobs`): only those are renamed, so that a path of
 * a file is not.
 */
export function renaming(names: PublicNames, subpaths: readonly string[]): Rename {
  const entries = subpaths.toSorted((a, b) => b.length - a.length).map((subpath) => subpath.replaceAll('/', String.raw`\/`));
  const rules: readonly (readonly [RegExp, string])[] = [
    [/~\/kit\/dist\/kit-config-server\.tgz/g, names.configServer],
    [/~\/kit\/dist\/kit\.tgz/g, names.toolkit],
    [/\{create\}/g, names.createCommand],
    [new RegExp(String.raw`(?<![\w@/.-])${WORKSPACE_NAMES.toolkit}\/(?=(?:${entries.join('|')})(?![\w/-]))`, 'g'), `${names.toolkit}/`],
    [/(?<=\b(?:from|import)\s*\(?\s*(['"]))kit(?=\1)/g, names.toolkit],
    [/@kit\/config-server(?![\w-])/g, names.configServer],
  ];
  return (text) => rules.reduce((result, [pattern, name]) => result.replaceAll(pattern, () => name), text);
}

/**
 * A page for readers of the published packages. `<!-- unreleased -->` … `<!-- /unreleased -->` holds only before the first release and is
 * removed; the text inside a comment that begins with `released` takes its place.
 */
export function releasedPage(text: string): string {
  return text.replaceAll(/<!-- unreleased -->\n[\s\S]*?<!-- \/unreleased -->\n/g, '').replaceAll(/<!-- released\n([\s\S]*?)-->\n/g, '$1');
}
