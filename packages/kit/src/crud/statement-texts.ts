/** A step on the way to a statement's text. */
class Step {
  text: string | undefined;
  #steps: Map<unknown, Step> | undefined;

  /** The next step; the same for the same part. */
  to(part: unknown): Step {
    const steps = (this.#steps ??= new Map());
    let step = steps.get(part) as Step | undefined;
    if (step === undefined) steps.set(part, (step = new Step()));
    return step;
  }
}

/**
 * Texts of statements, found by the parts of their shape one after the other: one key made of all parts would be put together and hashed with
 * every request. Starts over when it is full, whatever callers ask for: a text is quickly made again.
 */
export class StatementTexts {
  readonly #max: number;
  #start = new Step();
  #size = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#size;
  }

  /** Where every way begins. What is found there ends with a text, or was never asked for. */
  get start(): Step {
    return this.#start;
  }

  keep(step: Step, text: string): string {
    if (this.#size >= this.#max) {
      this.#start = new Step();
      this.#size = 0;
    } else this.#size += 1;
    step.text = text;
    return text;
  }
}
