/** How deep a chain of causes is followed; real ones have two or three links. */
const CAUSES_MAX = 5;

/** What the log keeps of an error. */
export interface LoggedError {
  readonly type: string;
  readonly message: string;
  readonly stack?: string;
  readonly code?: string;
  readonly status?: number;
  /** Which rule of the database was broken; names of the schema, never data. */
  readonly constraint?: string;
  readonly table?: string;
  readonly column?: string;
  readonly cause?: LoggedError;
  readonly errors?: readonly LoggedError[];
}

/**
 * An error as a log record, by an allow-list: drivers hang the data that caused an error on it. PostgreSQL's `detail` quotes the row
 * (`Key (email)=(ada@example.com) already exists.`), `where` and `internalQuery` the statement's values.
 */
export function loggedError(error: unknown, depth = 0): LoggedError {
  try {
    return readError(error, depth);
  } catch {
    // A getter that throws, a revoked proxy: writing down what went wrong must not go wrong itself.
    return { type: 'unreadable', message: 'the thrown value cannot be read' };
  }
}

function readError(error: unknown, depth: number): LoggedError {
  if (!(error instanceof Error)) return { type: typeof error, message: typeof error === 'string' ? error : 'thrown value is not an Error' };
  const facts = error as Error & Record<string, unknown>;
  const text = (name: string): Record<string, string> => (typeof facts[name] === 'string' ? { [name]: facts[name] } : {});
  const deeper = depth < CAUSES_MAX;
  return {
    type: error.name === 'Error' ? error.constructor.name : error.name,
    message: error.message,
    ...text('stack'),
    ...text('code'),
    ...(typeof facts['status'] === 'number' ? { status: facts['status'] } : {}),
    ...text('constraint'),
    ...text('table'),
    ...text('column'),
    ...(deeper && error.cause !== undefined ? { cause: loggedError(error.cause, depth + 1) } : {}),
    ...(deeper && error instanceof AggregateError ? { errors: error.errors.map((inner) => loggedError(inner, depth + 1)) } : {}),
  };
}
