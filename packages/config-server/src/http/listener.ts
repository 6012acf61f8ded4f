import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AuditRecord, Endpoint } from '../audit/audit-entry.ts';
import { isGranted } from '../config/grant.ts';
import { sectionKey } from '../section/definition.ts';
import type { Section } from '../section/section.ts';
import type { AnsweredRequest, RecordSpan } from '../tracing/record-span.ts';
import { parseTraceparent } from '../tracing/traceparent.ts';
import { answerWith, json, sendAnswer, type Answer } from './answer.ts';
import { documentAnswer } from './document-answer.ts';
import { METRICS_CONTENT_TYPE, renderMetrics } from './metrics.ts';
import { INTERNAL_ERROR, METHOD_NOT_ALLOWED, NOT_FOUND, STREAMS_EXHAUSTED, UNAUTHENTICATED, URI_TOO_LONG } from './problem.ts';
import { decodeKeyPath, decodeSegment, routeOf, type Route, type SectionEndpoint } from './route.ts';
import { checkAnswer, explainAnswer, pathsAnswer, statusAnswer } from './section-answers.ts';
import type { Service } from './service.ts';
import { STREAM_HEADERS } from './stream-hub.ts';
import type { Credential } from './token-table.ts';

const URL_BYTES_MAX = 8 * 1024;

const ALIVE = json(200, { status: 'ok' });
const READY = json(200, { ready: true });
const NOT_READY = json(503, { ready: false });

export type RequestListener = (request: IncomingMessage, response: ServerResponse) => void;

export interface ListenerOptions {
  /** Where the listener is mounted when the application around it does not strip the prefix from `request.url`. */
  readonly prefix?: string;
}

type SectionRoute = Extract<Route, { application: string }>;

/** The whole service as a request listener. */
export function createListener(service: Service, options: ListenerOptions = {}): RequestListener {
  const prefix = (options.prefix ?? '').replace(/\/$/, '');
  return (request, response) => {
    const exchange = new Exchange(service, request, response);
    try {
      exchange.handle(withoutPrefix(request.url ?? '', prefix));
    } catch {
      exchange.fail();
    }
  };
}

/** The listener of `health_bind`: the two probes and nothing else. */
export function createHealthListener(service: Service): RequestListener {
  return (request, response) => new Exchange(service, request, response).handleHealthOnly(request.url ?? '');
}

function withoutPrefix(url: string, prefix: string): string {
  if (prefix === '') return url;
  return url.startsWith(prefix) && url.charCodeAt(prefix.length) === 47 ? url.slice(prefix.length) : '';
}

/** One request on its way to one answer and one audit line. */
class Exchange {
  readonly #service: Service;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #startedAt: number;

  constructor(service: Service, request: IncomingMessage, response: ServerResponse) {
    this.#startedAt = service.recordSpan === undefined ? 0 : performance.now();
    this.#service = service;
    this.#request = request;
    this.#response = response;
  }

  handle(url: string): void {
    if ((this.#request.url ?? '').length > URL_BYTES_MAX) return this.#answer(URI_TOO_LONG, { endpoint: 'none', outcome: 'malformed' });
    const route = routeOf(url);
    if (route === undefined || (route.endpoint === 'stream' && this.#service.roster.maxStreamConnections === 0)) {
      return this.#answer(NOT_FOUND, { endpoint: 'none', outcome: 'not-found' });
    }
    if (!this.#isRead) return this.#answer(METHOD_NOT_ALLOWED, { endpoint: route.endpoint, outcome: 'method-not-allowed' });
    if (route.endpoint === 'healthz' || route.endpoint === 'readyz') return this.#probe(route.endpoint);
    const credential = this.#service.roster.tokens.find(this.#request.headers.authorization, this.#request.socket);
    if (credential === undefined) return this.#answer(UNAUTHENTICATED, { endpoint: route.endpoint, outcome: 'unauthenticated' });
    if (route.endpoint === 'metrics') return this.#metrics(credential);
    return this.#section(route as SectionRoute, credential);
  }

  handleHealthOnly(url: string): void {
    if (url.length > URL_BYTES_MAX) return this.#answer(URI_TOO_LONG, { endpoint: 'none', outcome: 'malformed' });
    const endpoint = routeOf(url)?.endpoint;
    if (endpoint !== 'healthz' && endpoint !== 'readyz') return this.#answer(NOT_FOUND, { endpoint: 'none', outcome: 'not-found' });
    if (!this.#isRead) return this.#answer(METHOD_NOT_ALLOWED, { endpoint, outcome: 'method-not-allowed' });
    return this.#probe(endpoint);
  }

  /** Something that should not happen did: the caller learns that and nothing more. */
  fail(): void {
    this.#answer(INTERNAL_ERROR, { endpoint: 'none', outcome: 'unavailable' });
  }

  get #isRead(): boolean {
    return this.#request.method === 'GET' || this.#request.method === 'HEAD';
  }

  #probe(endpoint: 'healthz' | 'readyz'): void {
    if (endpoint === 'healthz') return this.#answer(ALIVE, { endpoint, outcome: 'served' });
    const { ready } = this.#service;
    return this.#answer(ready ? READY : NOT_READY, { endpoint, outcome: ready ? 'served' : 'unavailable' });
  }

  #metrics(credential: Credential): void {
    const readable = [...this.#service.roster.sections.values()].filter((section) =>
      isGranted(credential.applications, section.definition.application, section.key),
    );
    const body = Buffer.from(renderMetrics(readable));
    this.#answer(answerWith(200, METRICS_CONTENT_TYPE, body), { endpoint: 'metrics', outcome: 'served', caller: credential.name });
  }

  /** Shape, then grant and section. Whatever fails, the section map was consulted and the answer is the same 404. */
  #section(route: SectionRoute, credential: Credential): void {
    const application = decodeSegment(route.application);
    const profile = decodeSegment(route.profile);
    const path = decodeKeyPath(route.path);
    const wellFormed = application !== undefined && profile !== undefined && path !== undefined;
    const key = wellFormed ? sectionKey(application, profile) : '/';
    const section = this.#service.roster.sections.get(key);
    const { endpoint } = route;
    const caller = credential.name;
    if (!wellFormed) return this.#answer(NOT_FOUND, { endpoint, outcome: 'malformed', caller });
    const granted = isGranted(credential.applications, application, key);
    if (!granted || section === undefined) {
      return this.#answer(NOT_FOUND, { endpoint, outcome: 'not-found', caller, application, profile });
    }
    return this.#serve(endpoint, section, credential, path);
  }

  #serve(endpoint: SectionEndpoint, section: Section, credential: Credential, path: string): void {
    switch (endpoint) {
      case 'document':
        return this.#document(section, credential);
      case 'paths':
        return this.#served(endpoint, section, credential, pathsAnswer(section));
      case 'explain':
        return this.#served(endpoint, section, credential, explainAnswer(section, path));
      case 'status':
        return this.#served(endpoint, section, credential, statusAnswer(section, this.#service.now()));
      case 'check':
        return this.#later(
          endpoint,
          section,
          credential,
          this.#service.rehearse(() => checkAnswer(section)),
        );
      case 'stream':
        return this.#stream(section, credential);
      default:
        return endpoint satisfies never;
    }
  }

  #document(section: Section, credential: Credential): void {
    const { installed } = section;
    const answer = documentAnswer(installed, this.#request.headers);
    if (answer instanceof Promise) return this.#later('document', section, credential, answer, installed.generation);
    return this.#served('document', section, credential, answer, installed.generation);
  }

  #stream(section: Section, credential: Credential): void {
    const { application, profile } = section.definition;
    const { roster, audit, streams, stopping } = this.#service;
    const record = { endpoint: 'stream', caller: credential.name, application, profile, generation: section.installed.generation } as const;
    // A stream opened now would outlive the ending of streams and hold the stop up to its deadline.
    if (stopping || streams.open >= roster.maxStreamConnections) {
      return this.#answer(STREAMS_EXHAUSTED, { ...record, outcome: 'unavailable' });
    }
    this.#record({ ...record, outcome: 'served' }, 200);
    if (this.#request.method === 'HEAD') {
      return audit.thenAnswer(() =>
        sendAnswer(this.#response, { status: 200, headers: STREAM_HEADERS, body: Buffer.alloc(0) }, true, true),
      );
    }
    return audit.thenAnswer(streams.reserve(section, credential, this.#response));
  }

  #served(endpoint: Endpoint, section: Section, credential: Credential, answer: Answer, generation = section.installed.generation): void {
    const { application, profile } = section.definition;
    const outcome = answer.status === 304 ? 'not-modified' : 'served';
    this.#answer(answer, { endpoint, outcome, caller: credential.name, application, profile, generation });
  }

  #later(endpoint: Endpoint, section: Section, credential: Credential, answer: Promise<Answer>, generation?: number): void {
    answer.then(
      (ready) => this.#served(endpoint, section, credential, ready, generation),
      () => this.fail(),
    );
  }

  #answer(answer: Answer, record: AuditRecord): void {
    this.#record(record, answer.status);
    this.#service.audit.thenAnswer(() => sendAnswer(this.#response, answer, this.#request.method === 'HEAD', !this.#service.stopping));
  }

  /** The audit line, and the span when there are any. A trace id is taken from authenticated callers only: strangers are not logged by it. */
  #record(record: AuditRecord, status: number): void {
    const { audit, recordSpan } = this.#service;
    const parent = record.caller === undefined ? undefined : parseTraceparent(this.#request.headers['traceparent']);
    if (recordSpan === undefined) return audit.record(record, parent?.traceId);
    const method = this.#request.method ?? '';
    return audit.record(record, attemptSpan(recordSpan, { method, startedAt: this.#startedAt, status, parent, record }) ?? parent?.traceId);
  }
}

/** An exporter or SDK that fails must not fail a request. */
function attemptSpan(recordSpan: RecordSpan, request: AnsweredRequest): string | undefined {
  try {
    return recordSpan(request);
  } catch {
    return undefined;
  }
}
