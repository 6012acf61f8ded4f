import { refuseUnknownNames } from '../options/read-options.ts';

/** One validation fault. `location` starts with `body`, `query`, `params` or `headers`. */
export interface FieldError {
  /** Where the value is: `['body', 'items', 0, 'sku']`. */
  readonly location: readonly (string | number)[];
  /** What is wrong, for programs. */
  readonly code: string;
  /** What is wrong, for people. */
  readonly message: string;
}

export interface KitErrorOptions {
  /** The code in the response: a promise to clients. */
  readonly code: string;
  /** The HTTP status. */
  readonly status: number;
  /** The public sentence: everything in it may be read by the caller. */
  readonly detail: string;
  /** A short name of the error. */
  readonly title?: string | undefined;
  /** Problems of single fields. */
  readonly errors?: readonly FieldError[] | undefined;
  /** Public extra members of the error body, e.g. `{ required_scope: 'orders:read' }`. */
  readonly extensions?: Readonly<Record<string, unknown>> | undefined;
  /** Response headers, e.g. `{ 'retry-after': '3' }`. Names in lower case. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The internal sentence: logged, never sent. Defaults to `detail`. */
  readonly message?: string | undefined;
  /** The error that led to this one: logged, never sent. */
  readonly cause?: unknown;
}

const optionNames: ReadonlySet<string> = new Set(
  Object.keys({
    code: true,
    status: true,
    detail: true,
    title: true,
    errors: true,
    extensions: true,
    headers: true,
    message: true,
    cause: true,
  } satisfies Record<keyof KitErrorOptions, true>),
);

/**
 * The one error class. `code`, `status`, `detail`, `errors`, `extensions` and `headers` are public; `message` and `cause` are logged and never sent.
 * Recognize it with {@link isKitError}: two copies of the package in one process have two classes but one mark.
 */
export class KitError extends Error {
  readonly code: string;
  readonly status: number;
  readonly detail: string;
  readonly title: string | undefined;
  readonly errors: readonly FieldError[] | undefined;
  readonly extensions: Readonly<Record<string, unknown>> | undefined;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly isKitError = true;

  constructor(options: KitErrorOptions) {
    refuseUnknownNames('new KitError()', options, optionNames);
    super(options.message ?? options.detail, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'KitError';
    this.code = options.code;
    this.status = options.status;
    this.detail = options.detail;
    this.title = options.title;
    this.errors = options.errors;
    this.extensions = options.extensions;
    this.headers = options.headers;
  }
}

/** True for an error of this toolkit, including one of another copy of the package. With `code`: only for that code. `isKitError(error, 'not_found')` */
export function isKitError(value: unknown, code?: string): value is KitError {
  if (typeof value !== 'object' || value === null) return false;
  const candidate = value as Partial<Record<keyof KitError, unknown>>;
  return (
    candidate.isKitError === true &&
    (code === undefined ? typeof candidate.code === 'string' : candidate.code === code) &&
    typeof candidate.status === 'number' &&
    typeof candidate.detail === 'string'
  );
}
