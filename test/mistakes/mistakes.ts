import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type Compiler, type Reported } from './compilers.ts';

const cases = join(import.meta.dirname, 'cases');
export const config = join(import.meta.dirname, 'tsconfig.json');
export const groups = ['models', 'resource', 'controller', 'routes', 'modules'].map((name) => join(cases, `${name}.ts`));

/** One mistake: what is wrong, and the text that an error has to mark. */
export interface Mistake {
  readonly group: string;
  readonly title: string;
  readonly marked: string;
  /** The export of the file that makes it. */
  readonly name: string;
  readonly errors: readonly { readonly marked: string; readonly code: number; readonly message: string }[];
}

/** What a compiler reports about each mistake of a file, in the order of the file. */
export function mistakesOf(file: string, reported: readonly Reported[]): Mistake[] {
  const source = readFileSync(file, 'utf8');
  const starts = [...source.matchAll(/^\/\/: (.+) \| (.+)$/gm)];
  return starts.map((found, index) => {
    const [from, to] = [found.index, starts[index + 1]?.index ?? source.length];
    const errors = reported
      .filter((each) => each.file === file && each.start >= from && each.start < to)
      .map(({ start, end, code, message }) => ({ marked: source.slice(start, end), code, message }));
    const name = /^export const (\w+)/m.exec(source.slice(from, to))?.[1] ?? '';
    return { group: basename(file, '.ts'), title: found[1] as string, marked: found[2] as string, name, errors };
  });
}

export function compileMistakes({ errors }: Compiler): Mistake[] {
  const reported = errors(config, groups);
  return groups.flatMap((file) => mistakesOf(file, reported));
}
