/**
 * Steps that run at most once: a second call gets the promise of the first. Which steps have begun is
 * all the state there is.
 */
export class Steps<Name extends string> {
  readonly #begun = new Map<Name, Promise<unknown>>();

  run<Result>(name: Name, work: () => Promise<Result>): Promise<Result> {
    const begun = this.#begun.get(name) as Promise<Result> | undefined;
    if (begun !== undefined) return begun;
    const running = work();
    this.#begun.set(name, running);
    return running;
  }

  hasBegun(name: Name): boolean {
    return this.#begun.has(name);
  }

  /** Resolves when those of the steps that have begun are over, whether they succeeded or not. */
  async settled(...names: readonly Name[]): Promise<void> {
    await Promise.allSettled(names.map(async (name) => this.#begun.get(name)));
  }
}
