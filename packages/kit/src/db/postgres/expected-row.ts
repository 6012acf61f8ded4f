import type { ExpectedRow, QueryOptions } from '../engine.ts';
import type { ModelStatements } from '../model-statements.ts';
import { quoteName } from '../names.ts';
import type { ColumnDefinition } from '../table-definition.ts';

type Readers = Readonly<Partial<Record<ColumnDefinition['kind'], (encoded: unknown) => unknown>>>;

/** How code has a value that was encoded for these kinds of columns; PostgreSQL may spell those of the others in another way. */
const READERS: Readers = {
  uuid: asIs,
  text: asIs,
  enum: asIs,
  int: asIs,
  bigint: asIs,
  float: asIs,
  bool: asIs,
  decimal: asIs,
  date: asIs,
  timestamp: (encoded) => new Date(encoded as string),
};

/** The same in its JSON form. */
const WIRE_READERS: Readers = { ...READERS, bigint: String, timestamp: asIs };

function asIs(encoded: unknown): unknown {
  return encoded;
}

/**
 * The row that an INSERT should write, given the names and encoded values of some columns in their order, and the values of those that the database
 * fills. Undefined where only the database can know.
 */
export function expectedRow(
  { columns }: ModelStatements,
  names: readonly string[],
  parameters: readonly unknown[],
  as: QueryOptions['as'],
): ExpectedRow | undefined {
  if (names.length === 0) return undefined;
  const readers = as === 'wire' ? WIRE_READERS : READERS;
  const row: Record<string, unknown> = {};
  const defaults: unknown[] = [];
  let next = 0;
  for (const { name, definition, encode } of columns) {
    let value: unknown = null;
    if (names[next] === name) value = parameters[next++];
    else if (definition.dbDefault !== undefined) {
      if (!('value' in definition.dbDefault)) return undefined;
      defaults.push((value = encode(definition.dbDefault.value)));
    } else if (!definition.nullable) return undefined;
    const read = value === null ? asIs : readers[definition.kind];
    if (read === undefined) return undefined;
    row[name] = read(value);
  }
  return { row, parameters: [...parameters, ...defaults] };
}

/**
 * An INSERT that fails unless the row is the expected one, bit by bit: a trigger, a rule or a default that the model does not know may have
 * made another. Its parameters are those of {@link expectedRow}.
 */
export function expectedInsertText({ columns, table }: ModelStatements, names: readonly string[]): string {
  const given = new Set(names);
  const listed = names.map(quoteName).join(', ');
  const places = names.map((_, index) => `$${index + 1}`).join(', ');
  // Rows of the type `record`, because two lists in parentheses are compared value by value, and equal is not the same: 1.0 is equal to 1.00.
  const conditions = [`cast(row(${listed}) as record) *= cast(row(${places}) as record)`];
  let next = names.length;
  for (const { name, definition } of columns) {
    if (given.has(name)) continue;
    const column = quoteName(name);
    conditions.push(definition.dbDefault === undefined ? `${column} is null` : `${column} is not distinct from $${++next}`);
  }
  return `with made as (insert into ${table} (${listed}) values (${places}) returning ${conditions.join(' and ')} as same)
select 1 / coalesce((select cast(same as integer) from made), 0) as same`;
}

/** Classes of errors: the statement could not be computed, such as 1 / 0, or not be planned, such as for a type that has no order of bits. */
const COMPUTED_OR_PLANNED = /^(22|42)...$/;

export function isRefutation(error: unknown): boolean {
  const code = (error as { readonly code?: unknown } | null)?.code;
  return typeof code === 'string' && COMPUTED_OR_PLANNED.test(code);
}
