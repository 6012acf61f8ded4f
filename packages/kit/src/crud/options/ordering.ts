/** One column of an ordering. */
export interface OrderTerm {
  readonly column: string;
  readonly descending: boolean;
}

export interface OrderingOptions {
  /** Columns a client may order by; ascending, or descending with a leading minus. */
  readonly by: readonly string[];
  /** Default order. Newest first where the key tells time. */
  readonly default?: readonly string[];
}

/** `-created_at` → `{ column: 'created_at', descending: true }`. */
export function orderTerm(text: string): OrderTerm {
  return text.startsWith('-') ? { column: text.slice(1), descending: true } : { column: text, descending: false };
}
