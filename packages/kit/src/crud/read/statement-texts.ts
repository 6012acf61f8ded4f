/** A step on the way to a statement. */
class Step<S> {
  statement: S | undefined;
  #steps: Map<unknown, Step<S>> | undefined;

  /** The next step; the same for the same part. */
  to(part: unknown): Step<S> {
    const steps = (this.#steps ??= new Map<unknown, Step<S>>());
    let step = steps.get(part);
    if (step === undefined) steps.set(part, (step = new Step()));
    return step;
  }
}

/**
 * Statements, found by the parts of their shape one after the other: one key made of all parts would be put together and hashed with
 * every request. Starts over when it is full, whatever callers ask for: a text is quickly made again.
 * `S`: the text, or what else is known about the statement beside it.
 */
export class StatementTexts<S = string> {
  readonly #max: number;
  #start = new Step<S>();
  #size = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#size;
  }

  /** Where every way begins. What is found there ends with a statement, or was never asked for. */
  get start(): Step<S> {
    return this.#start;
  }

  keep(step: Step<S>, statement: S): S {
    if (this.#size >= this.#max) {
      this.#start = new Step<S>();
      this.#size = 0;
    } else this.#size += 1;
    step.statement = statement;
    return statement;
  }
}
