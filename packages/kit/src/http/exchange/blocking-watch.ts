import type { CompiledRoute } from './compiled-route.ts';
import type { Log } from '../log.ts';

/** Often enough to see a block soon, seldom enough to cost nothing. */
const TICK_MS_MIN = 10;

/**
 * Names handlers that block the event loop: no other request is served meanwhile. What a handler does before its first `await` is timed
 * exactly. After that only the loop itself can tell that it was held, so a timer measures its own delay, and the warning names every
 * handler that was under way: one of them, or the garbage collector, or a starved machine.
 */
export class BlockingWatch {
  readonly #warnMs: number;
  readonly #log: Log;
  readonly #active = new Map<CompiledRoute, number>();
  /** Handlers that ended since the last tick; the one that blocked may be among them. */
  readonly #ended = new Set<CompiledRoute>();
  #explained = false;
  #timer: NodeJS.Timeout | undefined;

  /** `warnMs` 0 turns everything off. */
  constructor(warnMs: number, log: Log) {
    this.#warnMs = warnMs;
    this.#log = log;
  }

  get isOn(): boolean {
    return this.#warnMs > 0;
  }

  start(): void {
    if (!this.isOn || this.#timer !== undefined) return;
    const tickMs = Math.max(TICK_MS_MIN, this.#warnMs / 2);
    let expected = performance.now() + tickMs;
    this.#timer = setInterval(() => {
      const now = performance.now();
      this.#tick(now - expected);
      expected = now + tickMs;
    }, tickMs);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Runs the handler and times its synchronous part. */
  run<C>(route: CompiledRoute, handler: (context: C) => unknown, context: C): unknown {
    const started = performance.now();
    try {
      return handler(context);
    } finally {
      const heldMs = performance.now() - started;
      if (heldMs > this.#warnMs) {
        this.#explained = true;
        const name = nameOf(route);
        const facts = { operation: route.operationId, held_ms: Math.round(heldMs) };
        this.#log.warn(facts, `${name} blocked the event loop for ${facts.held_ms} ms; move the work to a worker or split it`);
      }
    }
  }

  entered(route: CompiledRoute): void {
    this.#active.set(route, (this.#active.get(route) ?? 0) + 1);
  }

  left(route: CompiledRoute): void {
    const count = this.#active.get(route) ?? 0;
    if (count > 1) this.#active.set(route, count - 1);
    else this.#active.delete(route);
    if (this.#timer !== undefined) this.#ended.add(route);
  }

  #tick(lateMs: number): void {
    const routes = new Set([...this.#active.keys(), ...this.#ended]);
    this.#ended.clear();
    const isExplained = this.#explained;
    this.#explained = false;
    if (lateMs <= this.#warnMs || routes.size === 0 || isExplained) return;
    const names = [...routes].map(nameOf).sort();
    const facts = { handlers: names, held_ms: Math.round(lateMs) };
    this.#log.warn(facts, `the event loop was blocked for ${facts.held_ms} ms while these handlers were under way: ${names.join(', ')}`);
  }
}

function nameOf({ controller, field }: CompiledRoute): string {
  return `${controller}.${field}`;
}
