/** Work that must finish before the databases close: ending request scopes, stream finalisers. */
export class InFlight {
  readonly #work = new Set<Promise<unknown>>();

  track(work: Promise<unknown>): void {
    this.#work.add(work);
    const forget = () => this.#work.delete(work);
    work.then(forget, forget);
  }

  /** Resolves when nothing is left, or when the deadline passes: true if something is still running. */
  async settle(deadline: Promise<unknown>): Promise<boolean> {
    const over = deadline.then(() => 'over' as const);
    while (this.#work.size > 0) {
      if ((await Promise.race([Promise.allSettled(this.#work), over])) === 'over') return true;
    }
    return false;
  }
}
