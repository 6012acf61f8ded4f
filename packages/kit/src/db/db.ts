import type { Dialect } from './dialect.ts';

/** A database handle or the caller's own transaction. */
export interface Db {
  readonly dialect: Dialect;
  /** The database's alias, `default` unless named. */
  readonly using: string;
  readonly isTransaction: boolean;
  transaction<R>(work: (tx: Db) => Promise<R>): Promise<R>;
  /** Belongs to the outermost transaction; dropped with a rolled-back savepoint. */
  afterCommit(callback: () => unknown): void;
  query<R>(text: string, parameters?: readonly unknown[]): Promise<R[]>;
}

export interface Database extends Db {
  readonly url: string;
  close(): Promise<void>;
}
