import type { Db } from './db.ts';
import type { Engine, ExpectedRow } from './engine.ts';
import { engineOf, sendAtOnce } from './handle.ts';
import type { Maybe } from './maybe.ts';
import type { ModelStatements } from './model-statements.ts';

/**
 * An INSERT whose row is known before it is made, where waiting for the row would cost a round trip. Its statement is sent, not waited for, and fails
 * where it wrote another row: then the transaction fails, and the row has to be asked for in another one.
 */
export class ExpectedInsertion {
  readonly #engine: Engine;
  readonly #statements: ModelStatements;
  readonly #expected: ExpectedRow;
  /** What the statement failed with. */
  failure: unknown;

  constructor(engine: Engine, statements: ModelStatements, expected: ExpectedRow) {
    this.#engine = engine;
    this.#statements = statements;
    this.#expected = expected;
  }

  get row(): Record<string, unknown> {
    return this.#expected.row;
  }

  /** `text`: what the engine's `expectedInsertText` returned for these columns. */
  send(tx: Db, text: string): Maybe<void> {
    return sendAtOnce(tx, text, this.#expected.parameters, { failureOf: (error) => (this.failure = error) });
  }

  /** Whether the statement failed by its check, or could not be run because of it. */
  get isRefuted(): boolean {
    return this.failure !== undefined && this.#engine.isRefutation?.(this.failure) === true;
  }

  /** The table does not keep what it is given: its rows are asked for from now on. */
  forget(): void {
    this.#engine.forgetExpected?.(this.#statements);
  }
}

/** The names and encoded values of an insertion, in the order of the model's columns. Undefined where the row has to be asked for. */
export function expectInsertion(
  db: Db,
  statements: ModelStatements,
  { names, parameters }: { readonly names: readonly string[]; readonly parameters: readonly unknown[] },
): ExpectedInsertion | undefined {
  const engine = engineOf(db);
  const expected = engine.expectedRow?.(statements, names, parameters);
  return expected === undefined ? undefined : new ExpectedInsertion(engine, statements, expected);
}

export function expectedInsertText(db: Db, statements: ModelStatements, names: readonly string[]): string {
  return engineOf(db).expectedInsertText?.(statements, names) ?? '';
}
