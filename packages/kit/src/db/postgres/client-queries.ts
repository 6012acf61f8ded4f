import type pg from 'pg';
import type { QueryOptions, StatementResult, StreamOptions } from '../engine.ts';
import { encodePostgres, INT8, postgresTypes, postgresWireTypes } from './codec.ts';
import { type DriverResult, type DriverStatement, StatementQuery } from './statement-query.ts';
import type { StatementNames } from './statement-names.ts';

export interface QuerySettings {
  readonly names: StatementNames | undefined;
}

/** Sends one statement on one client. */
export async function runOnClient(
  client: pg.ClientBase,
  settings: QuerySettings,
  text: string,
  parameters: readonly unknown[],
  options?: QueryOptions,
): Promise<StatementResult> {
  return toResult(await sendOnClient(client, driverStatement(settings, text, parameters, options)));
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
  return { name, text, values: parameters.map(encodePostgres), types: typesFor(as) };
}

function typesFor(as: QueryOptions['as']): pg.CustomTypesConfig {
  return as === 'wire' ? postgresWireTypes : postgresTypes;
}

export function toResult(result: pg.QueryResult<Record<string, unknown>>): StatementResult {
  for (const field of result.fields) {
    if (field.dataTypeID === INT8 && field.tableID === 0) toNumbers(result.rows, field.name);
  }
  return { rows: result.rows, count: result.rowCount ?? result.rows.length };
}

/** count(*) and other expressions are numbers, as on SQLite; bigint is what a bigint column holds. */
function toNumbers(rows: Record<string, unknown>[], name: string): void {
  for (const row of rows) {
    const value = row[name];
    if (typeof value !== 'bigint' && typeof value !== 'string') continue;
    const number = Number(value);
    if (Number.isSafeInteger(number)) row[name] = number;
  }
}

let cursors = 0;

/** Reads through a server-side cursor inside an open transaction: memory holds one chunk, not the whole answer. */
export async function* streamOnClient(
  client: pg.ClientBase,
  text: string,
  parameters: readonly unknown[],
  chunkSize: number,
  { as }: StreamOptions = {},
): AsyncIterableIterator<StatementResult> {
  const cursor = `kit_cursor_${++cursors}`;
  await client.query({
    text: `declare ${cursor} no scroll cursor for ${text}`,
    values: parameters.map(encodePostgres),
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
