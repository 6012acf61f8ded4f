/** A connection that is opened when it is first used, and again after it broke. */
export class KeptConnection<C> {
  readonly #open: () => Promise<C>;
  readonly #close: (connection: C) => Promise<unknown>;
  #current: Promise<C> | undefined;

  constructor(open: () => Promise<C>, close: (connection: C) => Promise<unknown>) {
    this.#open = open;
    this.#close = close;
  }

  get(): Promise<C> {
    if (this.#current === undefined) {
      const opening = this.#open();
      this.#current = opening;
      // The next message tries again.
      opening.catch(() => this.#forget(opening));
    }
    return this.#current;
  }

  /** The next message opens another one. What else waits for this one fails with it, or is confirmed. */
  async drop(connection: C): Promise<void> {
    const current = this.#current;
    if (current === undefined || (await current.catch(() => undefined)) !== connection) return;
    if (this.#forget(current)) await this.#close(connection).catch(() => undefined);
  }

  async close(): Promise<void> {
    const current = this.#current;
    this.#current = undefined;
    const connection = await current?.catch(() => undefined);
    if (connection !== undefined) await this.#close(connection).catch(() => undefined);
  }

  #forget(connection: Promise<C>): boolean {
    if (this.#current !== connection) return false;
    this.#current = undefined;
    return true;
  }
}
