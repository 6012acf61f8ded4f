import { quoteName } from '../declare/names.ts';
import type { ModelColumn, ModelStatements } from '../sql/model-statements.ts';

export function insertManyText({ table, list }: ModelStatements, columns: readonly ModelColumn[], rows: number, isRead: boolean): string {
  const tuple = (row: number) => `(${columns.map((_, index) => `$${row * columns.length + index + 1}`).join(', ')})`;
  const names = columns.map(({ name }) => quoteName(name)).join(', ');
  const tuples = Array.from({ length: rows }, (_, row) => tuple(row)).join(', ');
  return `insert into ${table} (${names}) values ${tuples}${isRead ? ` returning ${list}` : ''}`;
}

export function insertText({ table }: ModelStatements, names: readonly string[], returning: string): string {
  const columns =
    names.length === 0
      ? ' default values'
      : ` (${names.map(quoteName).join(', ')}) values (${names.map((_, index) => `$${index + 1}`).join(', ')})`;
  return `insert into ${table}${columns}${returning}`;
}
