import type { SqliteValue } from '../codec.ts';

/** What a reader process is asked to do. `number` is that of the statement: unlike any other of the process. */
export type ReaderOrder =
  | { readonly kind: 'run'; readonly number: number; readonly text: string; readonly values: readonly SqliteValue[] }
  /** Opens a statement and reads its first rows; fewer than `size` are all. `next` reads the others. */
  | {
      readonly kind: 'open';
      readonly number: number;
      readonly text: string;
      readonly values: readonly SqliteValue[];
      readonly size: number;
    }
  | { readonly kind: 'next'; readonly number: number; readonly size: number }
  /** Ends the open statement. Not answered. */
  | { readonly kind: 'close' }
  /** Tables have changed. Not answered. */
  | { readonly kind: 'forget' };

/** Errors lose their own members between processes: these are all that the parent looks at. */
export interface ReaderFailure {
  readonly message: string;
  readonly code: unknown;
  readonly errcode: unknown;
  readonly errstr: unknown;
}

/** Rows as SQLite has them; `columns` is the JSON of their `ResultColumns`, the same text for the same statement. */
export interface ReaderAnswer {
  readonly columns?: string;
  readonly rows?: unknown[];
  readonly failure?: ReaderFailure;
}
