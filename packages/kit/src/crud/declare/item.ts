/** A row or a part of one, by the names of its columns. */
export type Item = Record<string, unknown>;
