/** SQL that both databases read, or one text for each. */
export type SqlText =
  | string
  | {
      /** SQL for SQLite. */
      readonly sqlite: string;
      /** SQL for PostgreSQL. */
      readonly postgres: string;
    };
