import pg from 'pg';
import { forgetColumns, keepColumns, type KnownColumns, knownColumns, readerOf, type RowReader } from './known-columns.ts';

/** A statement as the driver takes it. */
export interface DriverStatement {
  readonly name: string | undefined;
  readonly text: string;
  readonly values: unknown[];
  readonly types: pg.CustomTypesConfig;
}

export type DriverResult = pg.QueryResult<Record<string, unknown>>;

export type Answered = (error: Error | null | undefined, result: DriverResult) => void;

/** What the driver's own queries have, beyond the types of the package. */
interface DriverQuery extends Omit<pg.Submittable, 'submit'> {
  name: string | undefined;
  text: string;
  values: unknown[];
  types: pg.CustomTypesConfig;
  queryMode: 'extended' | undefined;
  readonly _result: { _types: pg.CustomTypesConfig; fields: readonly pg.FieldDef[]; readonly rows: Record<string, unknown>[] };
  /** What a parser threw, reported when the answer is complete. */
  _canceledDueToError: unknown;
  /** Returns the error that keeps it from being sent. */
  submit(connection: pg.Connection): unknown;
  prepare(connection: pg.Connection): void;
  handleRowDescription(message: { readonly fields: pg.FieldDef[] }): void;
  handleDataRow(message: { readonly fields: (string | null)[] }): void;
  handleCommandComplete(message: unknown, connection: pg.Connection): void;
  handleError(error: Error, connection: pg.Connection): void;
}

export const DriverQueryClass = pg.Query as unknown as new (text: string, answered: Answered) => DriverQuery;

/**
 * A query of the driver, made from a text: from an object the driver makes a copy with property descriptors first, which takes as long as the
 * rest of the call. The driver also asks for the columns of a statement with every execution, and goes through them for each row. Here those of a
 * named statement are asked for once per connection, and its rows are read by a function written for them.
 */
export class StatementQuery extends DriverQueryClass {
  #connection: pg.Connection | undefined;
  #read: RowReader | undefined;

  constructor({ name, text, values, types }: DriverStatement, answered: Answered) {
    super(text, answered);
    this.name = name;
    this.values = values;
    this.types = types;
    this._result._types = types;
  }

  override prepare(connection: pg.Connection): void {
    this.#connection = connection;
    const known = this.name === undefined ? undefined : knownColumns(connection, this.name);
    if (known === undefined) super.prepare(connection);
    else this.#execute(connection as unknown as Protocol, known);
  }

  /** Like the driver's `prepare`, without asking for the columns. */
  #execute(protocol: Protocol, known: KnownColumns): void {
    this._result.fields = known.fields;
    this.#read = readerOf(known, this.types);
    try {
      protocol.bind({ statement: this.name, values: this.values, valueMapper: wireValue });
    } catch (error) {
      protocol.sync();
      this.handleError(error as Error, this.#connection as pg.Connection);
      return;
    }
    protocol.execute({});
    protocol.sync();
  }

  override handleRowDescription(message: { readonly fields: pg.FieldDef[] }): void {
    super.handleRowDescription(message);
    if (this.name !== undefined && this.#connection !== undefined) keepColumns(this.#connection, this.name, message.fields);
  }

  override handleDataRow(message: { readonly fields: (string | null)[] }): void {
    if (this.#read === undefined) super.handleDataRow(message);
    else if (this._canceledDueToError === false) this.#addRow(this.#read, message.fields);
  }

  #addRow(read: RowReader, values: (string | null)[]): void {
    try {
      if (values.length !== this._result.fields.length) this.#refuseOtherColumns();
      this._result.rows.push(read(values));
    } catch (error) {
      this._canceledDueToError = error;
    }
  }

  /** Values under the names of other columns would be worse than none. */
  #refuseOtherColumns(): never {
    if (this.#connection !== undefined && this.name !== undefined) forgetColumns(this.#connection, this.name);
    throw new Error('The columns of a prepared statement changed on the server, after a migration behind a pooler: run it again.');
  }
}

/** As the driver writes it: text, or bytes. */
export function wireValue(value: string | number | boolean | Uint8Array | null): string | Buffer | null {
  if (typeof value === 'string' || value === null) return value;
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return String(value);
}

export interface Protocol {
  readonly parsedStatements: Record<string, string>;
  /** Whose Parse was sent and not answered yet. */
  readonly submittedNamedStatements: Record<string, string>;
  parse(message: { readonly text: string; readonly name?: string | undefined }): void;
  bind(message: object): void;
  execute(message: object): void;
  sync(): void;
}

/**
 * A statement with another one in front of it, in one round trip. They share one Sync: when the first fails, the server skips the second. After
 * a BEGIN it therefore never runs, and is never committed, on its own; after anything else the two are one transaction. The rows of the first
 * are not kept.
 */
export class PrecededQuery extends StatementQuery {
  readonly #first: FirstStatement;
  readonly #name: string | undefined;
  /** Whether the first statement was executed. */
  hasBegun = false;

  constructor(first: FirstStatement, statement: DriverStatement, answered: Answered) {
    super(statement, answered);
    this.queryMode = 'extended';
    this.#first = first;
    this.#name = statement.name;
  }

  override prepare(connection: pg.Connection): void {
    const protocol = connection as unknown as Protocol;
    const { text, values } = this.#first;
    protocol.parse({ text });
    protocol.bind(values === undefined ? {} : { values });
    protocol.execute({});
    super.prepare(connection);
    // The driver would take the answer to the Parse of the first for that of the statement.
    this.name = undefined;
  }

  override handleDataRow(message: { readonly fields: (string | null)[] }): void {
    if (this.hasBegun) super.handleDataRow(message);
  }

  override handleCommandComplete(message: unknown, connection: pg.Connection): void {
    if (this.hasBegun) return super.handleCommandComplete(message, connection);
    this.hasBegun = true;
    this.name = this.#name;
  }

  override handleError(error: Error, connection: pg.Connection): void {
    // What the driver does for a query whose name it knows: the statement was not parsed.
    if (this.#name !== undefined) delete (connection as unknown as Protocol).submittedNamedStatements[this.#name];
    super.handleError(error, connection);
  }
}

/** Without rows that anybody needs. */
interface FirstStatement {
  readonly text: string;
  readonly values?: readonly string[];
}

/** Whether the driver sends it with the extended protocol. A statement without name and parameters may be several. */
export function isPrepared({ name, values }: DriverStatement): boolean {
  return name !== undefined || values.length > 0;
}
