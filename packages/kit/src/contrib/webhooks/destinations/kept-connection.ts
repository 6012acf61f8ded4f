/** A connection that is opened when it is first used, and again after it broke. */
export class KeptConnection<C> {
  readonly #open: () => Promise<C>;
  readonly #close: (connection: C) => Promise<unknown>;
  #current: Promise<C> | undefined;
  /** Whether the current one is open. */
  #isOpen = false;

  constructor(open: () => Promise<C>, close: (connection: C) => Promise<unknown>) {
    this.#open = open;
    this.#close = close;
  }

  get(): Promise<C> {
    if (this.#current === undefined) {
      const opening = this.#open();
      this.#current = opening;
      this.#isOpen = false;
      void this.#noteOpened(opening);
    }
    return this.#current;
  }

  async #noteOpened(opening: Promise<C>): Promise<void> {
    try {
      await opening;
      if (this.#current === opening) this.#isOpen = true;
    } catch {
      // The next message tries again.
      this.#forget(opening);
    }
  }

  /** The next message opens another one. What else waits for this one fails with it, or is confirmed. */
  async drop(connection: C): Promise<void> {
    const current = this.#current;
    if (current === undefined || (await current.catch(() => undefined)) !== connection) return;
    if (this.#forget(current)) await this.#close(connection).catch(() => undefined);
  }

  /** A server that does not answer is not waited for: a connection that is still being opened is closed when it is open. */
  async close(): Promise<void> {
    const current = this.#current;
    this.#current = undefined;
    const closed = current?.then(this.#close).catch(() => undefined);
    if (this.#isOpen) await closed;
  }

  #forget(connection: Promise<C>): boolean {
    if (this.#current !== connection) return false;
    this.#current = undefined;
    return true;
  }
}
