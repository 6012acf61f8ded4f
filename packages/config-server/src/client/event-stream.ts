import { RemoteSourceError } from './errors.ts';

export interface StreamEvent {
  readonly event: string;
  readonly data: string;
  readonly id: string | undefined;
}

// A generation event takes about a hundred bytes; a line this long is not one.
const LINE_CHARACTERS_MAX = 16_384;

/** Incremental reader of `text/event-stream` as WHATWG HTML defines it. Holds at most one unfinished event. */
export class EventStreamReader {
  /** The server's `retry:` in milliseconds, once it sent one. */
  retryMs: number | undefined;
  readonly #decoder = new TextDecoder();
  #rest = '';
  #skipLineFeed = false;
  #event = '';
  #data: string[] = [];
  #id: string | undefined;

  /** The events completed by this chunk. */
  push(chunk: Uint8Array): StreamEvent[] {
    const events: StreamEvent[] = [];
    this.#rest += this.#decoder.decode(chunk, { stream: true });
    for (;;) {
      if (this.#skipLineFeed && this.#rest !== '') {
        if (this.#rest[0] === '\n') this.#rest = this.#rest.slice(1);
        this.#skipLineFeed = false;
      }
      const end = this.#rest.search(/[\r\n]/);
      if (end === -1) break;
      this.#skipLineFeed = this.#rest[end] === '\r';
      const line = this.#rest.slice(0, end);
      this.#rest = this.#rest.slice(end + 1);
      const event = this.#line(line);
      if (event !== undefined) events.push(event);
    }
    if (this.#rest.length > LINE_CHARACTERS_MAX) throw new RemoteSourceError('invalid-event', 'the stream sent an overlong line');
    return events;
  }

  #line(line: string): StreamEvent | undefined {
    if (line === '') return this.#dispatch();
    const colon = line.indexOf(':');
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'event') this.#event = value;
    else if (field === 'data') this.#addData(value);
    else if (field === 'id' && !value.includes('\0')) this.#id = value;
    else if (field === 'retry' && /^\d{1,9}$/.test(value)) this.retryMs = Number(value);
    return undefined;
  }

  #addData(value: string): void {
    this.#data.push(value);
    if (this.#data.length > 64) throw new RemoteSourceError('invalid-event', 'the stream sent an overlong event');
  }

  #dispatch(): StreamEvent | undefined {
    const event = this.#data.length === 0 ? undefined : { event: this.#event || 'message', data: this.#data.join('\n'), id: this.#id };
    this.#event = '';
    this.#data = [];
    return event;
  }
}
