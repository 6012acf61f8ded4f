import type { Db } from '../../db/engine/db.ts';
import type { Dialect } from '../../db/dialect.ts';
import type { Model } from '../../db/declare/model.ts';
import type { Where } from '../../db/sql/where/where.ts';
import type { Fault } from '../../options/fault.ts';
import type { CrudCaller } from './crud-caller.ts';

/** Who searches, and where. */
export interface SearchContext {
  readonly caller: CrudCaller;
  readonly model: Model;
  readonly dialect: Dialect;
}

/** How `?search=` finds rows. Its condition is one more of the list's statement: it narrows the rows a caller sees and cannot widen them. */
export interface SearchBackend<N extends string = string> {
  /** In `kit inspect`. */
  readonly name: string;
  /** The columns it looks into. Every caller must be allowed to see them: a search tells what a column contains. */
  readonly columns: readonly N[];
  /** What the parameter is, for the OpenAPI document. */
  readonly description?: string;
  /** The words of a text as it searches for them, for the limit of words. Default: what is between blanks. */
  words?(text: string): readonly string[];
  /** The condition for a text of 1 to 200 characters and at most 10 words, unless `limits` of the controller say otherwise. A text that nothing can match is `{ or: [] }`. */
  where(text: string, context: SearchContext): Where | Promise<Where>;
  /** What is wrong with the declaration, before a database is open. */
  faults?(declared: { readonly model: Model }): readonly Fault[];
  /** What is wrong with the database, at start-up. */
  check?(declared: { readonly model: Model; readonly db: Db }): readonly Fault[] | Promise<readonly Fault[]>;
}
