export type FileFormat = 'csv' | 'jsonl';

export interface ExportOptions {
  /** The first is the default. */
  readonly formats: readonly FileFormat[];
  /** More rows are 422 `export_too_large`. Default: 1,000,000. */
  readonly rowsMax?: number;
  /** A client that takes nothing for this long is cut. Default: 60 s. */
  readonly idleMs?: number;
  /** Longest time of an export. Default: 15 minutes. */
  readonly durationMs?: number;
}

export interface ImportOptions<N extends string = string> {
  /** The formats that are accepted; the first one where neither `format` nor the media type names one. */
  readonly formats: readonly FileFormat[];
  /** The column that `mode=upsert` finds rows by, unique among the rows a caller sees. */
  readonly by?: N;
  /** Default: 10 MB. */
  readonly bytesMax?: number;
  /** Default: 10,000. */
  readonly rowsMax?: number;
}
