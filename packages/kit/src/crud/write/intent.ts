import type { Db } from '../../db/engine/db.ts';
import type { FieldError } from '../../errors/kit-error.ts';
import type { Item } from '../declare/item.ts';
import type { Via } from '../declare/resource.ts';
import type { Precondition } from './precondition.ts';
import type { PendingChange } from './record-changes.ts';
import type { RowForm, RowKey } from './row-statements.ts';

export type Verb = 'create' | 'update' | 'destroy' | 'restore' | 'transition' | 'action';

/** What is to be done to rows of one resource. One row is many of one. */
export interface Intent {
  readonly verb: Verb;
  readonly via: Via;
  readonly rows: readonly RowIntent[];
  /** Columns that the address sets: the parent. */
  readonly fixed?: Item | undefined;
  /** Which transition or action, for these verbs. */
  readonly action?: { readonly name: string; readonly input: unknown };
  readonly asked?: Asked;
  /** Collects what changed, for an outer intent that records it. Without it the intent records its own changes. */
  readonly changes?: PendingChange[];
}

export interface RowIntent {
  /** Absent for a row to be made. */
  readonly key?: RowKey;
  readonly values: Item;
  /** Names of the members the client sent: what its right to write is decided by. */
  readonly sent: readonly string[];
  readonly ifMatch?: Precondition | undefined;
  /** Where in the request the row is; absent for the only row of a request. */
  readonly at?: FieldError['location'];
  /** Where its values are, when several rows share them. Default: at the row. */
  readonly valuesAt?: FieldError['location'];
}

/** What only the request knows. */
export interface Asked {
  /** Settles a permission that needs the row; throws the denial. */
  readonly authorize?: ((row: Item) => Promise<unknown>) | undefined;
  /** More values of an update, which depend on the row as it was: columns that PUT resets where a rule about the row lets the caller write them. */
  readonly valuesOfRow?: ((before: Item) => Promise<Item>) | undefined;
  /** Writes the children of the row, in its transaction. A row with children is touched even when it does not change. */
  readonly children?: ((tx: Db, row: Item, isNew: boolean, changes: PendingChange[]) => Promise<void>) | undefined;
  readonly present?: Present | undefined;
  /** Gets what the code of an action returned, for each row. */
  readonly returned?: ((value: unknown) => void) | undefined;
  /** Collects values that the response shows once. Without it, nobody would see them: a hook that gives one fails. */
  readonly once?: Map<string, string | null>;
  /** Names the transitions that the caller may make now, for 409. Default: those of the resource. */
  readonly transitionsOf?: (row: Item) => Promise<readonly string[]>;
  /** Makes the tag of the row as it is now, for 412. */
  readonly etagOf?: ((row: Item) => string) | undefined;
  /** The transaction was opened for this write alone and fails with it, and no application code can catch the error: no savepoint is needed. */
  readonly ownsTransaction?: boolean | undefined;
}

/** Makes what the caller gets of the written rows. */
export interface Present {
  /** It takes statements of its own, inside the transaction. */
  readonly isDeep: boolean;
  /** The form that `build` takes a row in when no other code reads it. */
  readonly form?: RowForm;
  readonly build: (db: Db, rows: readonly Item[]) => Promise<void>;
}
