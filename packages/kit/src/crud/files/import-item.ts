import type { Db } from '../../db/engine/db.ts';
import type { Address } from '../input/with-address.ts';
import type { StoredColumn } from '../policy/policy.ts';
import { isSame } from '../write/change.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { type FieldError } from '../../errors/kit-error.ts';
import type { JsonLimits } from '../../http/json/parse-json.ts';
import { type Schema } from '../../http/declare/schema.ts';
import type { RowIntent } from '../write/intent.ts';
import type { Pipeline } from '../write/pipeline.ts';
import type { ReadFile } from './read-file.ts';
import type { ListDeclaration } from '../read/list-query.ts';
import type { Policy } from '../policy/policy.ts';
import type { Item } from '../declare/item.ts';

/** What rows of a file are made of, and how they are written. */
export interface ImportTarget {
  /** How the URL of a new row is made, where a controller decides it. */
  readonly address?: Address;
  readonly policy: Policy;
  readonly list: Pick<ListDeclaration, 'expand' | 'limits'>;
  /** Columns that are taken from a file. */
  readonly input: readonly string[];
  /** What a row must be. Default: the schema of a create with `input`. */
  readonly schema?: Schema;
  readonly pipeline: Pipeline;
}

export interface RowImportOptions {
  readonly rowsMax: number;
  /** The column that finds rows which are there already. Default: every row is new. */
  readonly by?: string | undefined;
  /** Limits of the JSON in a row, as of a body. Default: those of an app that sets none. */
  readonly json?: JsonLimits;
  /** Throws when the caller has lost the right in the meantime. Asked before the commit, with its transaction: a file may take long. */
  readonly requireAdmitted?: ((tx: Db) => Promise<void>) | undefined;
  /** Reads a file that has other words than the table. Default: it has the names of columns, and keys in references. */
  readonly translate?: ((file: ReadFile) => ReadFile) | undefined;
}

/** A row of a file. */
export interface ImportItem extends RowIntent {
  readonly at: FieldError['location'];
  /** Values of columns that the caller may not write: an export has them. They must be what the row has without them. */
  readonly kept: Item;
}

/** What each row of a file is found by. */
export type ImportKeys = ReadonlyMap<ImportItem, unknown>;

/** Rows that are written, or read, before others get their turn. Statements on SQLite run on this thread; on PostgreSQL a batch costs round trips. */
export const BATCH_ROWS = 100;
export const BATCH_ROWS_POSTGRES = 500;

export function unwritable(fields: readonly string[]): Error {
  return coreErrors.permission_denied({
    detail: `You may not write ${fields.join(', ')}. Leave the column out, or as it is.`,
    extensions: { fields },
  });
}

/** True when two values of a column are one, however they are spelled: `5.0` is `5.00`. */
export function isSameValue(column: StoredColumn, stored: unknown, given: unknown): boolean {
  if (isSame(column, stored, given)) return true;
  return stored !== null && stored !== undefined && given !== null && Object.is(column.encode(stored), column.encode(given));
}
