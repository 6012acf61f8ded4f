import { type RowBuilder, rowBuilder } from '../row-builder.ts';
import pg from 'pg';
import { BoundedMap } from '../../values/bounded-map.ts';
import { INT8 } from './decode.ts';

export type RowReader = RowBuilder<string | null, Record<string, unknown>>;

/** The columns of a statement that a connection holds under a name. They never change: PostgreSQL refuses the statement instead. */
export interface KnownColumns {
  readonly fields: readonly pg.FieldDef[];
  readonly readers: Map<pg.CustomTypesConfig, RowReader>;
}

/** More than there are names in use. What is forgotten is asked for again. */
const NAMES_MAX = 2000;

const columnsOfConnections = new WeakMap<pg.Connection, Map<string, KnownColumns>>();

export function knownColumns(connection: pg.Connection, name: string): KnownColumns | undefined {
  return columnsOfConnections.get(connection)?.get(name);
}

export function keepColumns(connection: pg.Connection, name: string, fields: readonly pg.FieldDef[]): void {
  let known = columnsOfConnections.get(connection);
  if (known === undefined) columnsOfConnections.set(connection, (known = new BoundedMap(NAMES_MAX)));
  known.set(name, { fields, readers: new Map() });
}

/** A pooler between us and the server may have prepared the statement again after a migration changed its columns. */
export function forgetColumns(connection: pg.Connection, name: string): void {
  columnsOfConnections.get(connection)?.delete(name);
}

/** Reads rows by a function written for their columns. */
export function readerOf({ fields, readers }: KnownColumns, types: pg.CustomTypesConfig): RowReader {
  let reader = readers.get(types);
  if (reader === undefined) readers.set(types, (reader = sharedReader(fields, types)));
  return reader;
}

const sharedReaders = new WeakMap<pg.CustomTypesConfig, BoundedMap<string, RowReader>>();

/**
 * The connections of a pool have the same statements. With a reader for each connection, V8 compiles sixteen functions instead of one: the
 * ratio of `crud-retrieve-postgres` fell from 0.89 to 0.54.
 */
function sharedReader(fields: readonly pg.FieldDef[], types: pg.CustomTypesConfig): RowReader {
  let known = sharedReaders.get(types);
  if (known === undefined) sharedReaders.set(types, (known = new BoundedMap(NAMES_MAX)));
  const key = JSON.stringify(fields.map(({ name, dataTypeID, tableID }) => [name, dataTypeID, tableID === 0]));
  let reader = known.get(key);
  if (reader === undefined) known.set(key, (reader = rowReader(fields, types)));
  return reader;
}

const plainText = pg.types.getTypeParser(pg.types.builtins.TEXT) as (text: string) => unknown;

function rowReader(fields: readonly pg.FieldDef[], types: pg.CustomTypesConfig): RowReader {
  const parsers = fields.map((field) => parserOf(field, types));
  return rowBuilder(
    fields.map(({ name }) => name),
    parsers.map((parse) => (parse === plainText ? undefined : parse)),
  );
}

function parserOf(field: pg.FieldDef, types: pg.CustomTypesConfig): (text: string) => unknown {
  const parse = types.getTypeParser(field.dataTypeID, 'text') as (text: string) => unknown;
  return isCount(field) ? (text) => countOf(parse(text)) : parse;
}

/** count(*) and other expressions are numbers, as on SQLite; bigint is what a bigint column holds. */
export function isCount({ dataTypeID, tableID }: pg.FieldDef): boolean {
  return dataTypeID === INT8 && tableID === 0;
}

export function countOf(value: unknown): unknown {
  if (typeof value !== 'bigint' && typeof value !== 'string') return value;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}
