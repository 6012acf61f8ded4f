import type { DocumentChange } from './diff-documents.ts';
import type { ChangeLevel } from './rules.ts';

const ORDER: readonly ChangeLevel[] = ['breaking', 'warning', 'additive'];

/** The changes, the worst first, and the version that they ask for. */
export function renderChanges(changes: readonly DocumentChange[], format: 'text' | 'json' | 'markdown'): string {
  const sorted = changes.toSorted((a, b) => ORDER.indexOf(a.level) - ORDER.indexOf(b.level));
  const bump = bumpOf(changes);
  if (format === 'json') return JSON.stringify({ bump, changes: sorted }, null, 2);
  if (changes.length === 0) return 'Nothing changed for callers.';
  const place = (change: DocumentChange) => (change.place === '' ? change.operation : `${change.operation}: ${change.place}`);
  if (format === 'markdown')
    return [
      '| change | where | what |',
      '|---|---|---|',
      ...sorted.map((each) => `| ${each.level} \`${each.id}\` | ${place(each)} | ${each.message} |`),
      '',
      `Version: ${bump}.`,
    ].join('\n');
  return [...sorted.map((each) => `${each.level.padEnd(8)} ${each.id}: ${place(each)} ${each.message}`), `Version: ${bump}.`].join('\n');
}

/** What semantic versioning asks for. */
export function bumpOf(changes: readonly DocumentChange[]): 'major' | 'minor' | 'patch' {
  if (changes.some(({ level }) => level === 'breaking')) return 'major';
  return changes.length > 0 ? 'minor' : 'patch';
}
