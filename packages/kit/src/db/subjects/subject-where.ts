import { fromJson } from '../declare/column-json.ts';
import { quoteName as q } from '../declare/names.ts';
import { type ModelColumn, statementsOf } from '../sql/model-statements.ts';
import type { SubjectPath, SubjectTable } from './subject.ts';

/** Adds a value to a statement: its placeholder. */
export type Bind = (value: unknown, type: string) => string;

/** The same value of the same type is bound once: statements about many people and tables stay below what a database takes. */
export function bindOnce(values: unknown[]): Bind {
  const known = new Map<string, string>();
  return (value, type) => {
    const name = `${type} ${String(value)}`;
    const bound = known.get(name) ?? `$${values.push(value)}`;
    known.set(name, bound);
    return bound;
  };
}

/** A condition for the rows of a path; undefined where no row can have one of the ids. */
export function pathSql(
  model: SubjectTable['model'],
  path: SubjectPath,
  ids: readonly string[],
  alias: string,
  bind: Bind,
): string | undefined {
  const column = `${alias}.${q(path.column)}`;
  if (path.through === null) {
    const stored = statementsOf(model).column(path.column);
    const bound = ids.flatMap((id) => {
      const value = idValue(stored, id === '' ? '' : (stored.settings.person?.value?.(id) ?? id));
      return value === undefined ? [] : [bind(value, stored.definition.kind)];
    });
    if (bound.length === 0) return undefined;
    return bound.length === 1 ? `${column} = ${bound[0]}` : `${column} in (${bound.join(', ')})`;
  }
  const { table, column: key } = path.through;
  const other = `${alias}x`;
  const inside = rowsSql(table, ids, other, bind);
  return inside === undefined ? undefined : `${column} in (select ${other}.${q(key)} from ${q(table.model.name)} ${other} where ${inside})`;
}

/** A condition for all rows of the subjects in a table; those that only mention the person are not theirs. */
export function rowsSql({ model, paths }: SubjectTable, ids: readonly string[], alias: string, bind: Bind): string | undefined {
  const terms = paths.flatMap((path) => (path.erase === 'unlink' ? [] : (pathSql(model, path, ids, alias, bind) ?? [])));
  return terms.length === 0 ? undefined : `(${terms.join(' or ')})`;
}

/** The id as the column stores it; undefined where it cannot. An empty id means "nobody's" in many tables, and never names anybody. */
function idValue({ definition, encode }: ModelColumn, id: string): unknown {
  if (id === '') return undefined;
  try {
    const { kind } = definition;
    return encode(kind === 'int' || kind === 'float' ? numberOf(id) : fromJson({ kind }, id));
  } catch {
    return undefined;
  }
}

function numberOf(id: string): number {
  if (!/^-?\d{1,15}$/.test(id)) throw new TypeError('not an integer');
  return Number(id);
}
