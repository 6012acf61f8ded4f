/** One event of a stream. `data` is sent as JSON. */
export interface ServerSentEvent<Data = unknown> {
  readonly data: Data;
  /** The event's name; `message` unless said. `error` is reserved for the terminal error event, `end` for the last one of a stream with `ends`. */
  readonly event?: string;
  /** Comes back as `Last-Event-ID` when the client reconnects. */
  readonly id?: string;
  /** How long the client should wait before it reconnects. */
  readonly retryMs?: number;
}
