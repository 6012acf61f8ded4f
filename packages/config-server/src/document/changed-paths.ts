import { leafPaths } from './key-path.ts';
import { isTable, memberOf, sameValue, type Table, type Value } from './value.ts';

/** Key paths whose value was added, removed or changed between two documents, in the order of the documents. It contains no values. */
export function changedPaths(before: Table, after: Table): string[][] {
  const changed: string[][] = [];
  compare(before, after, [], changed);
  return changed;
}

function compare(before: Table, after: Table, above: readonly string[], changed: string[][]): void {
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const path = [...above, key];
    const [old, fresh] = [memberOf(before, key), memberOf(after, key)];
    if (isTable(old) && isTable(fresh)) compare(old, fresh, path, changed);
    else if (old === undefined || fresh === undefined || !sameValue(old, fresh)) changed.push(...leaves(old, fresh, path));
  }
}

/** The leaves that were there and the leaves that are there now: a table may have become a value, or a value a table. */
function leaves(old: Value | undefined, fresh: Value | undefined, path: readonly string[]): string[][] {
  const gone = old === undefined ? [] : leavesBelow(old);
  const added = fresh === undefined ? [] : leavesBelow(fresh);
  // A value that replaced a value is one path.
  const both = gone[0]?.length === 0 && added[0]?.length === 0 ? added : [...gone, ...added];
  return both.map((leaf) => path.concat(leaf));
}

/** Leaves relative to a value: the value itself, unless it is a table with keys. */
function leavesBelow(value: Value): string[][] {
  const below = isTable(value) ? leafPaths(value) : [];
  return below.length === 0 ? [[]] : below;
}
