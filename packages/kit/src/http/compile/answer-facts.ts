/** What a handler's value says about the response besides its body. */
export interface AnswerFacts {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

const facts = new WeakMap<object, AnswerFacts>();

/** The value, with a status and headers that the response gets when a handler returns it. */
export function withAnswerFacts<T extends object>(value: T, given: AnswerFacts): T {
  facts.set(value, given);
  return value;
}

export function answerFactsOf(value: unknown): AnswerFacts | undefined {
  return typeof value === 'object' && value !== null ? facts.get(value) : undefined;
}
