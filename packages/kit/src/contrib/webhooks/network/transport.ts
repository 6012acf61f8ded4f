// Sending one webhook over HTTP. `Transport` is the seam for another client; `httpTransport` is ours.
import { TextDecoder } from 'node:util';
import type { Dispatcher } from 'undici';
import { ConnectFailure, codeOf, pinnedConnector, systemResolver } from './connect.ts';
import type { ConnectOptions, ResolveHost } from './connect.ts';
import { OriginPools, type HeldConnection } from './origin-pools.ts';
import { URL_NOT_ALLOWED, URLPolicy } from './url-policy.ts';
import { type OptionRules, readOptions } from '../../../options/read-options.ts';
import { aFunction, anything, milliseconds, objectWith } from '../../../options/value-rule.ts';

export interface TransportRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
}

export type TransportResult =
  | {
      readonly kind: 'response';
      readonly status: number;
      readonly retryAfter: string | null;
      /** The first 4 KiB of the response body, as storable text. */
      readonly bodyExcerpt: string;
    }
  | {
      readonly kind: 'failure';
      readonly reason: 'timeout' | 'connection' | 'tls' | 'blocked_address' | 'payload';
      /** Safe to show to the endpoint's owner. */
      readonly error: string;
      /** For logs and operators only. */
      readonly detail: string | null;
      readonly status: number | null;
    };

/**
 * Sends a request once and reports what happened; it does not throw for anything a receiver does.
 * A transport of your own must enforce its own timeout, and its own address policy.
 */
export interface Transport {
  /** Sends one request. Every outcome is a result, a failed connection too. */
  send(request: TransportRequest): Promise<TransportResult>;
  /** Closes open connections when the app stops. */
  close(): Promise<void>;
}

export interface HttpTransportOptions {
  /** Which addresses may be sent to. Default: public addresses over HTTPS. */
  readonly policy?: URLPolicy;
  /** How host names are resolved. Default: the resolver of the system. */
  readonly resolve?: ResolveHost;
  /** One hard deadline for an attempt, from the DNS query to the last byte of the response. */
  readonly timeoutMs?: number;
  /** A kept connection is not reused beyond this age, so a name that moved is resolved and vetted again. */
  readonly connectionAgeMaxMs?: number;
  /** Certificates that are trusted instead of those of Node. */
  readonly ca?: ConnectOptions['ca'];
}

const rules: OptionRules<HttpTransportOptions> = {
  policy: objectWith('a policy: URLPolicy({ … })', 'checkUrl', 'refuseAddress', 'isLocal'),
  resolve: aFunction,
  timeoutMs: milliseconds(1),
  connectionAgeMaxMs: milliseconds(0),
  ca: anything,
};

export const DEFAULT_TIMEOUT_MS = 15_000;
const RESPONSE_BYTES_MAX = 64 * 1024;
export const EXCERPT_BYTES_MAX = 4 * 1024;
const RESPONSE_HEADER_BYTES_MAX = 16 * 1024;
/** Each costs a call of the parser: those that fit into a response of the greatest length took the worker's time from all other receivers. */
const INFORMATIONAL_MAX = 1000;

/** Sends webhook requests over HTTPS. Connects only to addresses that the URL policy admits. */
export function httpTransport(options: HttpTransportOptions = {}): Transport {
  const {
    policy = URLPolicy(),
    timeoutMs = DEFAULT_TIMEOUT_MS,
    connectionAgeMaxMs = 60_000,
    ca,
  } = readOptions('httpTransport()', options, rules);
  const resolve = options.resolve ?? systemResolver(policy);
  // undici's clients never look at proxy variables of the environment and do not follow redirects; each connection was vetted for its
  // origin's host when it was opened.
  const pools = new OriginPools({
    connect: pinnedConnector({ policy, resolve, timeoutMs, ...(ca === undefined ? {} : { ca }) }),
    allowH2: false,
    pipelining: 1,
    connectionAgeMaxMs,
    keepAliveMaxTimeout: connectionAgeMaxMs,
    maxHeaderSize: RESPONSE_HEADER_BYTES_MAX,
    // The attempt's own deadline covers both.
    headersTimeout: 0,
    bodyTimeout: 0,
  });

  return {
    send({ url, headers, body }) {
      const target = policy.checkUrl(url);
      if (!target.ok) return Promise.resolve(blocked(target.detail));
      return new Promise((resolveResult) => {
        const connection = pools.hold(target.origin);
        const attempt = new Attempt(connection, timeoutMs, resolveResult);
        try {
          connection.dispatch({ path: target.path, method: 'POST', headers, body }, attempt);
        } catch (error) {
          attempt.onResponseError(null, error);
        }
      });
    },
    async close() {
      await pools.close();
    },
  };
}

/** One request, from dispatch to its single result. A class because undici calls back into it by method name. */
class Attempt implements Dispatcher.DispatchHandler {
  readonly #connection: HeldConnection;
  readonly #settle: (result: TransportResult) => void;
  readonly #timer: NodeJS.Timeout;
  #controller: Dispatcher.DispatchController | null = null;
  #settled = false;
  #status: number | null = null;
  #retryAfter: string | null = null;
  #informational = 0;
  #received = 0;
  #excerpt: Buffer[] = [];

  constructor(connection: HeldConnection, timeoutMs: number, settle: (result: TransportResult) => void) {
    this.#connection = connection;
    this.#settle = settle;
    this.#timer = setTimeout(() => this.#expire(), timeoutMs);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // The deadline passed while the connection was being made: nothing is sent any more.
    if (this.#settled) controller.abort(new ConnectFailure('timeout', 'expired'));
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: Record<string, string | string[] | undefined>): void {
    // Informational responses precede the real one.
    if (status < 200) {
      this.#informational += 1;
      if (this.#informational > INFORMATIONAL_MAX)
        controller.abort(new ConnectFailure('connection', 'The receiver sent too many informational responses.'));
      return;
    }
    this.#status = status;
    const retryAfter = headers['retry-after'];
    this.#retryAfter = typeof retryAfter === 'string' ? retryAfter : null;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#received < EXCERPT_BYTES_MAX) this.#excerpt.push(chunk.subarray(0, EXCERPT_BYTES_MAX - this.#received));
    this.#received += chunk.length;
    if (this.#received <= RESPONSE_BYTES_MAX) return;
    // Enough was read to know the answer; the rest is not worth the connection.
    this.#finish();
    controller.abort(new ConnectFailure('connection', 'response dropped'));
  }

  onResponseEnd(): void {
    this.#connection.release('answered');
    this.#finish();
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: unknown): void {
    this.#connection.release('failed');
    this.#fail(error);
  }

  #fail(error: unknown): void {
    const { reason, message } = classify(error);
    if (reason === 'blocked_address') this.#end(blocked(message));
    else this.#end({ kind: 'failure', reason, error: message, detail: null, status: this.#status });
  }

  #finish(): void {
    if (this.#status === null) return this.#fail(new ConnectFailure('connection', 'The response has no status.'));
    this.#end({ kind: 'response', status: this.#status, retryAfter: this.#retryAfter, bodyExcerpt: decodeExcerpt(this.#excerpt) });
  }

  #expire(): void {
    this.#fail(new ConnectFailure('timeout', 'The receiver did not send its whole response in time.'));
    this.#controller?.abort(new ConnectFailure('timeout', 'expired'));
  }

  #end(result: TransportResult): void {
    if (this.#settled) return;
    this.#settled = true;
    clearTimeout(this.#timer);
    this.#settle(result);
  }
}

function blocked(detail: string): TransportResult {
  return { kind: 'failure', reason: 'blocked_address', error: URL_NOT_ALLOWED, detail, status: null };
}

function classify(error: unknown): { reason: 'timeout' | 'connection' | 'tls' | 'blocked_address' | 'payload'; message: string } {
  if (error instanceof ConnectFailure) return { reason: error.reason, message: error.message };
  const code = codeOf(error);
  if (code === 'UND_ERR_INVALID_ARG' || code === 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH') {
    return { reason: 'payload', message: `The request could not be formed (${code}).` };
  }
  if (code.startsWith('ERR_SSL_') || code.startsWith('ERR_TLS_')) return { reason: 'tls', message: `The TLS connection failed (${code}).` };
  if (code === 'UND_ERR_HEADERS_OVERFLOW') return { reason: 'connection', message: 'The response headers are too large.' };
  if ((error as Error).name === 'HTTPParserError') return { reason: 'connection', message: 'The response is not HTTP/1.1.' };
  if (code === 'UND_ERR_SOCKET')
    return { reason: 'connection', message: 'The receiver closed the connection before its response was complete.' };
  return { reason: 'connection', message: `The connection broke (${code}).` };
}

/** Whatever was received as text that every database stores: invalid UTF-8 and NUL become the replacement character. */
export function decodeExcerpt(chunks: readonly Buffer[]): string {
  if (chunks.length === 0) return '';
  // `stream` drops a character cut in half at the limit instead of marking it as damaged.
  return new TextDecoder().decode(Buffer.concat(chunks), { stream: true }).replaceAll('\0', '\uFFFD');
}
