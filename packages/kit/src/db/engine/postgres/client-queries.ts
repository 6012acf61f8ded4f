import type pg from 'pg';
import type { QueryOptions, StatementResult, StreamOptions } from '../engine.ts';
import { postgresTypes, postgresWireTypes } from './decode.ts';
import { encodePostgres } from '../../values/encode-postgres.ts';
import { countOf, isCount } from './known-columns.ts';
import { type DriverResult, type DriverStatement, StatementQuery } from './statement-query.ts';
import type { StatementNames } from './statement-names.ts';

export interface QuerySettings {
  readonly names: StatementNames | undefined;
}

/** Sends one statement on one client. */
export function runOnClient(
  client: pg.ClientBase,
  settings: QuerySettings,
  text: string,
  parameters: readonly unknown[],
  options?: QueryOptions,
): Promise<StatementResult> {
  return new Promise((resolve, reject) => {
    const statement = driverStatement(settings, text, parameters, options);
    client.query(new StatementQuery(statement, (error, result) => (error ? reject(error) : resolve(toResult(result)))));
  });
}

export function sendOnClient(client: pg.ClientBase, statement: DriverStatement): Promise<DriverResult> {
  return new Promise((resolve, reject) => {
    client.query(new StatementQuery(statement, (error, result) => (error ? reject(error) : resolve(result))));
  });
}

/** Throws what is wrong with the parameters. */
export function driverStatement(
  settings: QuerySettings,
  text: string,
  parameters: readonly unknown[],
  { replanned = false, as }: QueryOptions = {},
): DriverStatement {
  const name = replanned ? undefined : settings.names?.nameOf(text);
  return { name, text, values: encodeAll(parameters), types: typesFor(as) };
}

/** The protocol counts the parameters of a statement with 16 bits. The driver would send a wrong count, and the server end the connection. */
const PARAMETERS_MAX = 65_535;

function encodeAll(parameters: readonly unknown[]): unknown[] {
  if (parameters.length > PARAMETERS_MAX)
    throw new Error(
      `A statement has ${parameters.length} parameters; PostgreSQL takes ${PARAMETERS_MAX}. Send a list as one array: = any($1).`,
    );
  return parameters.map(encodePostgres);
}

function typesFor(as: QueryOptions['as']): pg.CustomTypesConfig {
  return as === 'wire' ? postgresWireTypes : postgresTypes;
}

export function toResult(result: pg.QueryResult<Record<string, unknown>>): StatementResult {
  for (const field of result.fields) if (isCount(field)) for (const row of result.rows) row[field.name] = countOf(row[field.name]);
  return { rows: result.rows, count: result.rowCount ?? result.rows.length };
}

let cursors = 0;

/** Reads through a server-side cursor inside an open transaction: memory holds one chunk, not the whole answer. */
export async function* streamOnClient(
  client: pg.ClientBase,
  text: string,
  parameters: readonly unknown[],
  chunkSize: number,
  { as }: StreamOptions = {},
): AsyncGenerator<StatementResult, void> {
  const cursor = `kit_cursor_${++cursors}`;
  await client.query({
    text: `declare ${cursor} no scroll cursor for ${text}`,
    values: encodeAll(parameters),
  });
  try {
    for (;;) {
      const chunk = toResult(
        await client.query<Record<string, unknown>>({ text: `fetch forward ${chunkSize} from ${cursor}`, types: typesFor(as) }),
      );
      if (chunk.count > 0) yield chunk;
      if (chunk.count < chunkSize) return;
    }
  } finally {
    await client.query(`close ${cursor}`).catch(() => undefined); // the transaction may be gone already, and the cursor with it
  }
}
