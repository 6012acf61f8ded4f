import type { Db } from './db.ts';
import type { Engine, ExpectedRow, QueryOptions } from './engine.ts';
import { engineOf, sendAtOnce } from './handle.ts';
import type { Maybe } from './maybe.ts';
import type { ModelStatements } from './model-statements.ts';

/**
 * An INSERT whose row is known before it is made, where waiting for the row would cost a round trip. Its statement is sent, not waited for, and fails
 * where it wrote another row: then the transaction fails with {@link UnexpectedRow}, and the row has to be asked for in another one.
 */
export class ExpectedInsertion {
  readonly #engine: Engine;
  readonly #expected: ExpectedRow;
  readonly statements: ModelStatements;

  constructor(engine: Engine, statements: ModelStatements, expected: ExpectedRow) {
    this.#engine = engine;
    this.#expected = expected;
    this.statements = statements;
  }

  get row(): Record<string, unknown> {
    return this.#expected.row;
  }

  /** `text`: what the engine's `expectedInsertText` returned for these columns. `explained` is shown every other error before the transaction fails with it. */
  send(tx: Db, text: string, explained: (error: unknown) => void): Maybe<void> {
    const failureOf = (error: unknown): unknown => {
      if (this.#engine.isRefutation?.(error) === true) return new UnexpectedRow(this, error);
      explained(error);
      return error;
    };
    return sendAtOnce(tx, text, this.#expected.parameters, { failureOf, joined: 1 });
  }

  /** The table does not keep what it is given: its rows are asked for from now on. */
  forget(): void {
    this.#engine.forgetExpected?.(this.statements);
  }
}

/** The row of an {@link ExpectedInsertion} was another one, or could not be compared. Nothing was saved. */
export class UnexpectedRow extends Error {
  readonly #insertion: ExpectedInsertion;

  constructor(insertion: ExpectedInsertion, cause: unknown) {
    super(`The table ${insertion.statements.table} made another row than it was given.`, { cause });
    this.name = 'UnexpectedRow';
    this.#insertion = insertion;
  }

  /** Asking for the row worked, so the expectation was wrong, not the values. */
  confirmed(): void {
    this.#insertion.forget();
  }
}

/** Does work that expects rows, and where one of them was another, the work that asks for them. */
export async function againUnlessExpected<R>(expecting: () => Promise<R>, asking: () => Promise<R>): Promise<R> {
  let unexpected: UnexpectedRow;
  try {
    return await expecting();
  } catch (error) {
    if (!(error instanceof UnexpectedRow)) throw error;
    unexpected = error;
  }
  const result = await asking();
  unexpected.confirmed();
  return result;
}

/** Whether rows of this database can be expected at all. */
export function canExpectRows(db: Db): boolean {
  return engineOf(db).expectedRow !== undefined;
}

/** The names and encoded values of an insertion, in the order of the model's columns. Undefined where the row has to be asked for. */
export function expectInsertion(
  db: Db,
  statements: ModelStatements,
  { names, parameters }: { readonly names: readonly string[]; readonly parameters: readonly unknown[] },
  as?: QueryOptions['as'],
): ExpectedInsertion | undefined {
  const engine = engineOf(db);
  const expected = engine.expectedRow?.(statements, names, parameters, as);
  return expected === undefined ? undefined : new ExpectedInsertion(engine, statements, expected);
}

export function expectedInsertText(db: Db, statements: ModelStatements, names: readonly string[]): string {
  return engineOf(db).expectedInsertText?.(statements, names) ?? '';
}
