import type { AllowedChanges } from './allow-list.ts';
import type { DocumentChange } from './document-change.ts';
import type { ChangeLevel } from './rules.ts';

const ORDER: readonly ChangeLevel[] = ['breaking', 'warning', 'additive'];

export type DiffFormat = 'text' | 'json' | 'markdown';

/** The changes, the worst first, and the version that they require. JSON has each change of each operation; the others name a shared one once. */
export function renderChanges({ remaining, allowed, expired, unused }: AllowedChanges, format: DiffFormat): string {
  const bump = bumpOf([...remaining, ...allowed.map(({ change }) => change)]);
  const sorted = remaining.toSorted((a, b) => ORDER.indexOf(a.level) - ORDER.indexOf(b.level));
  if (format === 'json')
    return JSON.stringify(
      {
        bump,
        changes: sorted,
        allowed: allowed.map(({ change, entry }) => ({ ...change, until: entry.until, reason: entry.reason })),
        expired,
        unused,
      },
      null,
      2,
    );
  const notes = [
    ...[...Map.groupBy(allowed, ({ entry }) => entry)].map(
      ([{ id, operation, until, reason }, list]) =>
        `Allowed until ${until}: ${id}: ${operation}${list.length > 1 ? ` (${list.length} changes)` : ''}. ${reason}`,
    ),
    ...expired.map(({ id, operation, until }) => `Expired on ${until}, no longer allowed: ${id}: ${operation}.`),
    ...unused.map(({ id, operation }) => `Not needed any more, remove it from the list: ${id}: ${operation}.`),
  ];
  if (remaining.length === 0 && allowed.length === 0) return ['Nothing changed for callers.', ...notes].join('\n');
  const rows = grouped(sorted);
  const version = `Version: ${bump}.`;
  if (format === 'markdown')
    return [
      ...(rows.length === 0 ? [] : ['| change | where | what |', '|---|---|---|']),
      ...rows.map(({ change, where }) => `| ${change.level} \`${change.id}\` | ${cell(where)} | ${cell(change.message)} |`),
      ...(rows.length === 0 ? [] : ['']),
      ...notes.map((note) => `- ${note}`),
      ...(notes.length === 0 ? [] : ['']),
      version,
    ].join('\n');
  return [...rows.map(({ change, where }) => `${change.level.padEnd(8)} ${change.id}: ${where} ${change.message}`), ...notes, version].join(
    '\n',
  );
}

/** A change of a named schema appears once, with the first operation that has it. */
function grouped(changes: readonly DocumentChange[]): { readonly change: DocumentChange; readonly where: string }[] {
  const place = (change: DocumentChange) => (change.place === '' ? change.operation : `${change.operation}: ${change.place}`);
  const groups = Map.groupBy(changes, (change) =>
    change.component === undefined ? change : `${change.id} ${change.component} ${change.message}`,
  );
  return [...groups.values()].map((group) => {
    const [change] = group as [DocumentChange];
    const others = new Set(group.map(({ operation }) => operation)).size - 1;
    return {
      change,
      where:
        others > 0 ? `${place(change)} (${change.component}; ${others} more ${others > 1 ? 'operations' : 'operation'})` : place(change),
    };
  });
}

/** A vertical bar of a message would end the cell. */
const cell = (text: string): string => text.replaceAll('|', String.raw`\|`).replaceAll('\n', ' ');

/** The part of a semantic version that must grow. An allowed change counts: callers see it all the same. */
export function bumpOf(changes: readonly DocumentChange[]): 'major' | 'minor' | 'patch' {
  if (changes.some(({ level }) => level === 'breaking')) return 'major';
  return changes.length > 0 ? 'minor' : 'patch';
}
