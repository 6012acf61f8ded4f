import type { AuditEntry, AuditRecord, AuditSink } from './audit-entry.ts';

/**
 * Writes audit lines before responses: entries of one event-loop turn are flushed together at its end, and only then are the
 * turn's responses sent. A caller that has its response therefore has its line, even if the process is killed right after, and
 * a busy turn costs one write.
 */
export class AuditRecorder {
  readonly #sink: AuditSink;
  readonly #now: () => number;
  #waiting: (() => void)[] = [];
  #scheduled = false;
  #timeMs = Number.NaN;
  #timeText = '';

  constructor(sink: AuditSink, now: () => number) {
    this.#sink = sink;
    this.#now = now;
  }

  record(record: AuditRecord, traceId?: string): void {
    const { endpoint, outcome, caller = null, application = null, profile = null, generation = null } = record;
    const entry: AuditEntry = { time: this.#time(), caller, application, profile, endpoint, outcome, generation };
    this.#deliver(traceId === undefined ? entry : { ...entry, trace_id: traceId });
  }

  /** Runs `send` after everything recorded so far was flushed. */
  afterFlush(send: () => void): void {
    this.#waiting.push(send);
    this.#schedule();
  }

  flush(): void {
    attempt(() => this.#sink.flush?.());
  }

  /** Gives the sink up to `waitMs` to write what is queued. */
  async close(waitMs: number): Promise<void> {
    this.flush();
    let deadline: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => (deadline = setTimeout(resolve, waitMs)));
    await Promise.race([late, this.#closeSink()]);
    clearTimeout(deadline);
  }

  async #closeSink(): Promise<void> {
    try {
      await this.#sink.close?.();
    } catch {
      // A failing sink never fails a stop.
    }
  }

  #deliver(entry: AuditEntry): void {
    try {
      const returned: unknown = this.#sink(entry);
      // An async sink rejects later; that must not end the process either.
      if (returned instanceof Promise) returned.catch(() => undefined);
    } catch {
      // A failing sink never fails a request.
    }
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      const waiting = this.#waiting;
      this.#waiting = [];
      this.flush();
      for (const send of waiting) attempt(send);
    });
  }

  /** Most requests of a busy server share their millisecond. */
  #time(): string {
    const now = this.#now();
    if (now !== this.#timeMs) {
      this.#timeMs = now;
      this.#timeText = new Date(now).toISOString();
    }
    return this.#timeText;
  }
}

/** A failing sink or peer must not stop the rest of the turn. */
function attempt(run: () => void): void {
  try {
    run();
  } catch {
    // There is nowhere left to report it.
  }
}
