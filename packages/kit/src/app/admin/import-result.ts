/** What a file did, or would do. */
export interface AdminImportResult {
  readonly created: number;
  readonly updated: number;
  readonly dry_run: boolean;
  /** Columns of the file that are known and not taken. */
  readonly ignored: readonly string[];
  /** Of a dry run, in place of an error about rows. */
  readonly preview?: {
    /** What each column of the file is read as; null: it is left out. */
    readonly columns: readonly { readonly name: string; readonly field: string | null; readonly fault: string | null }[];
    /** The first rows, and those with errors, by the name of the field. */
    readonly rows: readonly {
      readonly number: number;
      readonly values: Readonly<Record<string, unknown>>;
      readonly errors: readonly { readonly field: string; readonly message: string }[];
    }[];
    /** The errors that were found. Reading ends at a limit. */
    readonly errors: number;
  };
}
