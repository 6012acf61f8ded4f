import type { AuditEntry, AuditRecord, AuditSink } from './audit-entry.ts';

/**
 * Orders audit and answer: entries recorded during one event-loop turn are flushed together at its end, and only then do the
 * turn's answers leave. A caller that has its answer therefore has its line, even if the process is killed the next instant,
 * and a busy turn costs one write.
 */
export class AuditRecorder {
  readonly #sink: AuditSink;
  readonly #now: () => number;
  #answers: (() => void)[] = [];
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
    this.#hand(traceId === undefined ? entry : { ...entry, trace_id: traceId });
  }

  /** Runs `answer` after everything recorded so far was flushed. */
  thenAnswer(answer: () => void): void {
    this.#answers.push(answer);
    this.#schedule();
  }

  flush(): void {
    attempt(() => this.#sink.flush?.());
  }

  close(): void {
    this.flush();
    attempt(() => this.#sink.close?.());
  }

  #hand(entry: AuditEntry): void {
    try {
      const returned: unknown = this.#sink(entry);
      // A sink written as an async function rejects later; that must not take the process down either.
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
      const answers = this.#answers;
      this.#answers = [];
      this.flush();
      for (const answer of answers) attempt(answer);
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

/** One sink or one peer that fails must not take the rest of the turn with it. */
function attempt(run: () => void): void {
  try {
    run();
  } catch {
    // There is nobody left to tell.
  }
}
