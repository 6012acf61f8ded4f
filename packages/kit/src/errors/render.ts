import { coreErrors } from './core-errors.ts';
import type { ErrorMap } from './error-map.ts';
import { isKitError, type KitError } from './kit-error.ts';
import { translateServerError } from './server-errors.ts';

/** `problem+json` is RFC 9457; `detail` is the short form `{ detail, code, errors? }`. */
export type ErrorFormat = 'problem+json' | 'detail';

export interface RenderOptions {
  readonly format: ErrorFormat;
  readonly requestId: string;
  /** Nearest first: operation, controller, version mount, app. */
  readonly maps?: readonly ErrorMap[];
}

export interface RenderedError {
  readonly status: number;
  readonly code: string;
  readonly contentType: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** The public body before serialisation; event streams send it as their terminal `error` event. */
  readonly document: Readonly<Record<string, unknown>>;
  /** What belongs in the server log: the original value, never sent. `error` for 5xx, `debug` for refusals. */
  readonly log: { readonly level: 'error' | 'debug'; readonly error: unknown };
}

/** Decides what any thrown value means: the nearest map that covers it, a KitError as it is, the server's own refusals, else `internal_error`. */
export function toKitError(thrown: unknown, maps: readonly ErrorMap[] = []): KitError {
  if (thrown instanceof Error) {
    for (const map of maps) {
      const mapped = map.translate(thrown);
      if (mapped !== undefined) return mapped;
    }
  }
  // An error of another status would pass for a success, or for something no client can read.
  if (isKitError(thrown) && Number.isInteger(thrown.status) && thrown.status >= 400 && thrown.status <= 599) return thrown;
  return translateServerError(thrown) ?? coreErrors.internal_error({ cause: thrown });
}

/** The one place where an error becomes a response. Pure: the caller sends and logs. */
export function renderError(thrown: unknown, options: RenderOptions): RenderedError {
  try {
    return render(toKitError(thrown, options.maps), thrown, options);
  } catch (failure) {
    // A map's own function threw, or the public members cannot be serialised: still answer, still reveal nothing.
    return render(coreErrors.internal_error(), new AggregateError([thrown, failure], 'an error could not be rendered'), options);
  }
}

function render(error: KitError, original: unknown, { format, requestId }: RenderOptions): RenderedError {
  const document: Record<string, unknown> =
    format === 'detail'
      ? { detail: error.detail, code: error.code }
      : {
          type: `urn:kit:error:${error.code}`,
          title: error.title ?? titleOf(error.code),
          status: error.status,
          detail: error.detail,
          code: error.code,
          request_id: requestId,
        };
  if (error.errors !== undefined && error.errors.length > 0) document['errors'] = error.errors;
  // The short form has no other members; the request id is in its header.
  if (format === 'problem+json') {
    for (const [name, value] of Object.entries(error.extensions ?? {})) if (!reservedMembers.has(name)) document[name] = value;
  }
  return {
    status: error.status,
    code: error.code,
    contentType: format === 'detail' ? 'application/json; charset=utf-8' : 'application/problem+json; charset=utf-8',
    headers: { ...error.headers, 'x-request-id': requestId },
    body: JSON.stringify(document),
    document,
    log: { level: error.status >= 500 ? 'error' : 'debug', error: original },
  };
}

const reservedMembers = new Set(['type', 'title', 'status', 'detail', 'code', 'errors', 'request_id']);

function titleOf(code: string): string {
  const words = code.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}
