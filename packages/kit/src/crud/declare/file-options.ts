export type FileFormat = 'csv' | 'jsonl';

export interface ExportOptions {
  /** The first is the default. */
  readonly formats: readonly FileFormat[];
  /** More rows are 422 `export_too_large`; 1,000,000 unless given. */
  readonly rowsMax?: number;
  /** A client that takes nothing for this long is cut; 60 s unless given. */
  readonly idleMs?: number;
  /** Longest time of an export; 15 minutes unless given. */
  readonly durationMs?: number;
}

export interface ImportOptions<N extends string = string> {
  readonly formats: readonly FileFormat[];
  /** The column that `mode=upsert` finds rows by, unique among the rows a caller sees. */
  readonly by?: N;
  /** 10 MB unless given. */
  readonly bytesMax?: number;
  /** 10,000 unless given. */
  readonly rowsMax?: number;
}
