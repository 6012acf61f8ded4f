/** One waiter that can be woken early; a wake-up that comes while it does not wait is kept. */
export class WakeUp {
  #news = false;
  #wake: (() => void) | undefined;

  wake(): void {
    this.#news = true;
    this.#wake?.();
  }

  forget(): void {
    this.#news = false;
  }

  async next(ms: number): Promise<void> {
    await this.when(() => this.#news, ms);
    this.#news = false;
  }

  /** Resolves when news makes the condition true, or after so long. */
  async when(condition: () => boolean, ms: number): Promise<void> {
    if (ms <= 0 || condition()) return;
    await new Promise<void>((resolve) => {
      const timer = ms === Infinity ? undefined : setTimeout(resolve, ms);
      this.#wake = () => {
        if (!condition()) return;
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = undefined;
  }
}
