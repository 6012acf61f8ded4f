/** One request of a test and its response, as they are compared: without what differs from run to run. */
export interface RecordedExchange {
  /** The test's full name, and which of its apps was asked. */
  readonly test: string;
  readonly request: {
    readonly method: string;
    readonly url: string;
    readonly headers: Readonly<Record<string, unknown>>;
    readonly body: unknown;
  };
  readonly response: { readonly status: number; readonly headers: Readonly<Record<string, unknown>>; readonly body: unknown };
  /** Each statement in order: what it does, to which tables, and the indexes it uses. */
  readonly statements: readonly string[];
}
