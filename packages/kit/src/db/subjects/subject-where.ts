import { fromJson } from '../declare/column-json.ts';
import { quoteName as q } from '../declare/names.ts';
import { type ModelColumn, statementsOf } from '../sql/model-statements.ts';
import type { SubjectPath, SubjectTable } from './subject.ts';

/** A condition for the rows of a path; undefined where no row can have the id. Values are added to `values`. */
export function pathSql(model: SubjectTable['model'], path: SubjectPath, id: string, alias: string, values: unknown[]): string | undefined {
  const column = `${alias}.${q(path.column)}`;
  if (path.through === null) {
    const stored = statementsOf(model).column(path.column);
    const value = idValue(stored, id === '' ? '' : (stored.settings.person?.value?.(id) ?? id));
    return value === undefined ? undefined : `${column} = $${values.push(value)}`;
  }
  const { table, column: key } = path.through;
  const other = `${alias}x`;
  const inside = rowsSql(table, id, other, values);
  return inside === undefined ? undefined : `${column} in (select ${other}.${q(key)} from ${q(table.model.name)} ${other} where ${inside})`;
}

/** A condition for all rows of the subject in a table; those that only mention the person are not theirs. */
export function rowsSql({ model, paths }: SubjectTable, id: string, alias: string, values: unknown[]): string | undefined {
  const terms = paths.flatMap((path) => (path.erase === 'unlink' ? [] : (pathSql(model, path, id, alias, values) ?? [])));
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
