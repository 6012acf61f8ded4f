import { isTable, memberOf, type Table, type Value } from './value.ts';

// A key path joins keys with dots. A dot or backslash inside a key is escaped with a backslash, so that every path
// names one key only.

export function joinKeyPath(keys: readonly string[]): string {
  return keys.map((key) => key.replaceAll(/[\\.]/g, String.raw`\$&`)).join('.');
}

export function splitKeyPath(path: string): string[] {
  const keys: string[] = [];
  let key = '';
  for (let index = 0; index < path.length; index++) {
    const character = path[index]!;
    if (character === '\\' && index + 1 < path.length) key += path[++index]!;
    else if (character === '.') {
      keys.push(key);
      key = '';
    } else key += character;
  }
  keys.push(key);
  return keys;
}

/** The value a table holds at a path, or undefined. Arrays are leaves: their elements have no path. */
export function valueAt(table: Table, keys: readonly string[]): Value | undefined {
  let value: Value | undefined = table;
  for (const key of keys) {
    if (!isTable(value)) return undefined;
    value = memberOf(value, key);
  }
  return value;
}

/** Whether a table has something else than a table above a path: laid over another one, it removes what that has at the path. */
export function replacesAbove(table: Table, keys: readonly string[]): boolean {
  for (let length = 1; length < keys.length; length++) {
    const value = valueAt(table, keys.slice(0, length));
    if (value === undefined) return false;
    if (!isTable(value)) return true;
  }
  return false;
}

/** Every leaf in document order. Arrays and empty tables are leaves. */
export function leafPaths(document: Table): string[][] {
  const leaves: string[][] = [];
  const visit = (table: Table, prefix: readonly string[]): void => {
    for (const key of Object.keys(table)) {
      const value = memberOf(table, key)!;
      const path = [...prefix, key];
      if (isTable(value) && Object.keys(value).length > 0) visit(value, path);
      else leaves.push(path);
    }
  };
  visit(document, []);
  return leaves;
}
