import { runInNewContext } from 'node:vm';
import type { OrderedTable } from './ordered-tree.ts';

/** Which values of a SOPS document are encrypted. A document has one rule; the default leaves keys ending in `_unencrypted` alone. */
export interface SopsRule {
  readonly name: 'unencrypted_suffix' | 'encrypted_suffix' | 'unencrypted_regex' | 'encrypted_regex';
  readonly pattern: string;
}

export const RULE_NAMES = ['unencrypted_suffix', 'encrypted_suffix', 'unencrypted_regex', 'encrypted_regex'] as const;
export const DEFAULT_RULE: SopsRule = { name: 'unencrypted_suffix', pattern: '_unencrypted' };

/**
 * The pattern comes from the file. A pattern that backtracks without end must not stop the process. A busy machine may give the process no
 * time at all for 100 ms; then the pattern is not at fault, and is tried again until it used that much.
 */
const MATCHING_MS_MAX = 100;

/** Whether a rule encrypts the value below these keys. Any of the keys decides. */
export type IsEncrypted = (keys: readonly string[]) => boolean;

/** Compiles a rule for a document with these keys; undefined when its pattern cannot be used or takes too long. */
export function compileRule({ name, pattern }: SopsRule, keys: ReadonlySet<string>): IsEncrypted | undefined {
  const matching = name.endsWith('_suffix') ? new Set([...keys].filter((key) => key.endsWith(pattern))) : keysMatching(pattern, [...keys]);
  if (matching === undefined) return undefined;
  const encryptsMatches = name.startsWith('encrypted');
  return (path) => path.some((key) => matching.has(key)) === encryptsMatches;
}

export function keysOf(tree: OrderedTable): Set<string> {
  const keys = new Set<string>();
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) for (const item of node) visit(item);
    if (!(node instanceof Map)) return;
    for (const [key, item] of node as OrderedTable) {
      keys.add(key);
      visit(item);
    }
  };
  visit(tree);
  return keys;
}

function keysMatching(pattern: string, keys: readonly string[]): Set<string> | undefined {
  // SOPS uses the syntax of RE2, where flags for the whole pattern come first.
  const flags = /^\(\?([is]+)\)/.exec(pattern);
  const source = flags === null ? pattern : pattern.slice(flags[0].length);
  const start = process.cpuUsage();
  const used = (): number => (process.cpuUsage(start).user + process.cpuUsage(start).system) / 1000;
  do {
    try {
      const matched = runInNewContext(
        'const expression = new RegExp(source, flags); JSON.stringify(JSON.parse(keys).map((key) => expression.test(key)))',
        { source, flags: [...new Set(`u${flags?.[1] ?? ''}`)].join(''), keys: JSON.stringify(keys) },
        { timeout: MATCHING_MS_MAX },
      ) as string;
      const matches = JSON.parse(matched) as boolean[];
      return new Set(keys.filter((_, index) => matches[index]));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') return undefined;
    }
  } while (used() < MATCHING_MS_MAX);
  return undefined;
}
