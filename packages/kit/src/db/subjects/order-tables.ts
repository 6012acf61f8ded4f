import type { Model } from '../declare/model.ts';
import type { SubjectTable } from './subject.ts';

/** Whether the rows of `table` are found without those of `model`. */
export function isAcyclic(table: SubjectTable, model: Model): boolean {
  return table.model !== model && table.paths.every(({ through }) => through === null || isAcyclic(through.table, model));
}

/** Rows that refer to others first, so that no deletion is refused; tables of people or tenants last. */
export function orderTables(tables: readonly SubjectTable[]): { readonly tables: SubjectTable[]; readonly faults: string[] } {
  const left = new Map(tables.map((table) => [table.model.name, table]));
  const ordered: SubjectTable[] = [];
  const faults: string[] = [];
  while (left.size > 0) {
    const free = [...left.values()].filter((table) => ![...left.values()].some((other) => other !== table && refersTo(other, table)));
    const next = free.find(({ isRoot }) => !isRoot) ?? free[0] ?? [...left.values()].find(({ isRoot }) => !isRoot);
    const table = next ?? [...left.values()][0];
    if (table === undefined) break;
    if (free.length === 0) faults.push(`the tables ${[...left.keys()].map((name) => `"${name}"`).join(', ')} refer to one another`);
    left.delete(table.model.name);
    ordered.push(table);
  }
  return { tables: ordered, faults: [...new Set(faults)].slice(0, 1) };
}

/** Whether rows of one are found by those of the other, or keep them from being deleted. */
function refersTo({ model, paths }: SubjectTable, { model: other }: SubjectTable): boolean {
  if (paths.some(({ through }) => through?.table.model.name === other.name)) return true;
  return Object.values(model.columns).some(({ settings: { reference } }) => {
    if (reference === undefined || reference.isConstrained === false || reference.onDelete === 'set null') return false;
    return (typeof reference.target === 'string' ? reference.target : reference.target().name) === other.name;
  });
}
