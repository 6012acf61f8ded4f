import type pg from 'pg';
import { type Answered, DriverQueryClass, type DriverStatement, type Protocol, wireValue } from './statement-query.ts';

/** How many rows a statement wrote or found; the tag ends with it: `INSERT 0 1`. */
const COUNT = /\d+$/;

/**
 * Statements that are one transaction without BEGIN and COMMIT, in one round trip. They share one Sync, which commits them; when one fails, the
 * server skips those behind it and rolls back those before it. Of each only the number of rows is known.
 */
export class BatchQuery extends DriverQueryClass {
  readonly #statements: readonly DriverStatement[];
  readonly #completed: (place: number, count: number) => void;
  /** The place of the statement that is answered next. After the last one only the commit can fail. */
  place = 0;
  /** Until then nothing can have been committed. */
  wasSent = false;

  constructor(statements: readonly DriverStatement[], completed: (place: number, count: number) => void, answered: Answered) {
    super('', answered);
    this.queryMode = 'extended';
    this.#statements = statements;
    this.#completed = completed;
    this.#expect();
  }

  /** The driver takes the answer to a Parse for that of the statement whose name and text the query has. */
  #expect(): void {
    const { name, text = '' } = this.#statements[this.place] ?? {};
    this.name = name;
    this.text = text;
  }

  /** As the driver refuses it for one statement: under the name of another one the wrong statement would run. */
  override submit(connection: pg.Connection): unknown {
    const { parsedStatements, submittedNamedStatements } = connection as unknown as Protocol;
    for (const { name, text } of this.#statements) {
      const known = name === undefined ? text : (parsedStatements[name] ?? submittedNamedStatements[name] ?? text);
      if (known !== text) return new Error(`Prepared statements must be unique: '${name}' was used for a different statement.`);
    }
    return super.submit(connection);
  }

  override prepare(connection: pg.Connection): void {
    const protocol = connection as unknown as Protocol;
    this.wasSent = true;
    try {
      for (const { name, text, values } of this.#statements) {
        if (name === undefined || !isParsed(protocol, name)) {
          protocol.parse({ text, name });
          if (name !== undefined) protocol.submittedNamedStatements[name] = text;
        }
        protocol.bind({ statement: name, values, valueMapper: wireValue });
        protocol.execute({});
      }
    } catch (error) {
      // A Sync would commit the statements before this one.
      connection.stream.destroy(error as Error);
      return;
    }
    protocol.sync();
  }

  override handleDataRow(): void {
    // Not asked for.
  }

  override handleCommandComplete(message: unknown): void {
    const count = Number(COUNT.exec((message as { readonly text: string }).text)?.[0] ?? 0);
    const { place } = this;
    this.place += 1;
    this.#expect();
    this.#completed(place, count);
  }

  override handleError(error: Error, connection: pg.Connection): void {
    // The server skipped what follows: those statements were not parsed.
    const { submittedNamedStatements } = connection as unknown as Protocol;
    for (const { name } of this.#statements.slice(this.place)) if (name !== undefined) delete submittedNamedStatements[name];
    super.handleError(error, connection);
  }
}

function isParsed({ parsedStatements, submittedNamedStatements }: Protocol, name: string): boolean {
  return parsedStatements[name] !== undefined || submittedNamedStatements[name] !== undefined;
}
