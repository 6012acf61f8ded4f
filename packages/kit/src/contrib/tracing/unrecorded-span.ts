import { type Context, ROOT_CONTEXT, type Span, type SpanContext, trace, TraceFlags } from '@opentelemetry/api';

/**
 * The span of a request that is not recorded. Work inside it is not recorded either, and belongs to one trace in logs, events and jobs. The ids
 * are made when they are read, which most requests never do.
 */
export class UnrecordedSpan implements Span {
  readonly #traceId: string | undefined;
  #context: SpanContext | undefined;

  /** The caller's trace goes on, if there is one. */
  constructor(traceId: string | undefined) {
    this.#traceId = traceId;
  }

  spanContext(): SpanContext {
    return (this.#context ??= { traceId: this.#traceId ?? randomHex(16), spanId: randomHex(8), traceFlags: TraceFlags.NONE });
  }

  isRecording(): boolean {
    return false;
  }

  setAttribute(): this {
    return this;
  }

  setAttributes(): this {
    return this;
  }

  addEvent(): this {
    return this;
  }

  addLink(): this {
    return this;
  }

  addLinks(): this {
    return this;
  }

  setStatus(): this {
    return this;
  }

  updateName(): this {
    return this;
  }

  end(): void {
    // Nothing was recorded.
  }

  recordException(): void {
    // Nothing is recorded.
  }
}

/** Under which key a context has its span: the API keeps it to itself, and says it when a span is set. */
const SPAN_KEY = keyOfSpans();

function keyOfSpans(): symbol {
  let found: symbol | undefined;
  const asked: Context = {
    getValue: () => undefined,
    setValue(key) {
      found = key;
      return asked;
    },
    deleteValue: () => asked,
  };
  trace.setSpan(asked, new UnrecordedSpan(undefined));
  if (found === undefined) throw new Error('@opentelemetry/api sets no span in a context: its version is not supported.');
  return found;
}

/**
 * The root context with an unrecorded span. The API's own context copies a map and makes three functions, for every request, and most are never
 * looked at.
 */
export class UnrecordedContext implements Context {
  readonly #traceId: string | undefined;
  #span: UnrecordedSpan | undefined;

  constructor(traceId: string | undefined) {
    this.#traceId = traceId;
  }

  getValue(key: symbol): unknown {
    return key === SPAN_KEY ? (this.#span ??= new UnrecordedSpan(this.#traceId)) : undefined;
  }

  setValue(key: symbol, value: unknown): Context {
    return this.#asUsual().setValue(key, value);
  }

  deleteValue(key: symbol): Context {
    return this.#asUsual().deleteValue(key);
  }

  #asUsual(): Context {
    return ROOT_CONTEXT.setValue(SPAN_KEY, this.getValue(SPAN_KEY));
  }
}

/** As the SDK makes its ids: they tell traces apart and protect nothing. */
function randomHex(bytes: 8 | 16): string {
  let text = '';
  while (text.length < 2 * bytes)
    text += Math.trunc(Math.random() * 0x1_0000_0000)
      .toString(16)
      .padStart(8, '0');
  // Zeros alone are not an id.
  return /[^0]/.test(text) ? text : randomHex(bytes);
}
