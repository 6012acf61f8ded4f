/** SQL that both databases read, or one text for each. */
export type SqlText = string | { readonly sqlite: string; readonly postgres: string };
