const sentences = new Map<string, string>();

/** The pattern of a column's values. Who sends another value is told the sentence, not the pattern. */
export function explained(pattern: string, sentence: string): string {
  sentences.set(pattern, sentence);
  return pattern;
}

/** Undefined for patterns of applications. */
export function patternSentence(pattern: unknown): string | undefined {
  return typeof pattern === 'string' ? sentences.get(pattern) : undefined;
}
