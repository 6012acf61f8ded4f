import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AuditRecord, Endpoint } from '../audit/audit-entry.ts';
import { isGranted } from '../config/grant.ts';
import { sectionKey } from '../section/definition.ts';
import type { Section } from '../section/section.ts';
import type { AnsweredRequest, RecordSpan } from '../tracing/record-span.ts';
import { parseTraceparent } from '../tracing/traceparent.ts';
import { responseWith, json, sendResponse, type HttpResponse } from './response.ts';
import { documentResponse } from './document-response.ts';
import { METRICS_CONTENT_TYPE, renderMetrics } from './metrics.ts';
import { INTERNAL_ERROR, METHOD_NOT_ALLOWED, NOT_FOUND, STREAMS_EXHAUSTED, UNAUTHENTICATED, URI_TOO_LONG } from './problem.ts';
import { decodeKeyPath, decodeSegment, pathOf, routeOf, type Route, type SectionEndpoint } from './route.ts';
import { checkResponse, explainResponse, historyResponse, pathsResponse, statusResponse } from './section-responses.ts';
import type { Service } from './service.ts';
import { STREAM_HEADERS } from './stream-hub.ts';
import type { Credential } from './token-table.ts';

const URL_BYTES_MAX = 8 * 1024;

const ALIVE = json(200, { status: 'ok' });
const READY = json(200, { ready: true });
const NOT_READY = json(503, { ready: false });

export type RequestListener = (request: IncomingMessage, response: ServerResponse) => void;

export interface ListenerOptions {
  /** The mount path, when the surrounding application does not strip it from `request.url`. */
  readonly prefix?: string;
}

type SectionRoute = Extract<Route, { application: string }>;

/** The whole service as a request listener. */
export function createListener(service: Service, options: ListenerOptions = {}): RequestListener {
  if (typeof service !== 'object' || service === null)
    throw new TypeError('createListener(): the service is missing; use await ConfigServer.open(config).');
  const prefix = ((options as ListenerOptions | null)?.prefix ?? '').replace(/\/$/, '');
  return (request, response) => {
    const exchange = new Exchange(service, request, response);
    try {
      exchange.handle(withoutPrefix(pathOf(request.url ?? ''), prefix));
    } catch {
      exchange.fail();
    }
  };
}

/** The listener of `health_bind`: the two probes and nothing else. */
export function createHealthListener(service: Service): RequestListener {
  return (request, response) => new Exchange(service, request, response).handleHealthOnly(pathOf(request.url ?? ''));
}

function withoutPrefix(url: string, prefix: string): string {
  if (prefix === '') return url;
  return url.startsWith(prefix) && url.charCodeAt(prefix.length) === 47 ? url.slice(prefix.length) : '';
}

/** One request: it gets one response and one audit line. */
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
    if (this.#isTooLong) return this.#respond(URI_TOO_LONG, { endpoint: 'none', outcome: 'malformed' });
    const route = routeOf(url);
    if (route === undefined || this.#isOff(route.endpoint)) {
      return this.#respond(NOT_FOUND, { endpoint: 'none', outcome: 'not-found' });
    }
    if (!this.#isRead) return this.#respond(METHOD_NOT_ALLOWED, { endpoint: route.endpoint, outcome: 'method-not-allowed' });
    if (route.endpoint === 'healthz' || route.endpoint === 'readyz') return this.#probe(route.endpoint);
    const credential = this.#service.roster.tokens.find(this.#authorization, this.#request.socket);
    if (credential === undefined) return this.#respond(UNAUTHENTICATED, { endpoint: route.endpoint, outcome: 'unauthenticated' });
    if (route.endpoint === 'metrics') return this.#metrics(credential);
    return this.#section(route as SectionRoute, credential);
  }

  handleHealthOnly(url: string): void {
    if (this.#isTooLong) return this.#respond(URI_TOO_LONG, { endpoint: 'none', outcome: 'malformed' });
    const endpoint = routeOf(url)?.endpoint;
    if (endpoint !== 'healthz' && endpoint !== 'readyz') return this.#respond(NOT_FOUND, { endpoint: 'none', outcome: 'not-found' });
    if (!this.#isRead) return this.#respond(METHOD_NOT_ALLOWED, { endpoint, outcome: 'method-not-allowed' });
    return this.#probe(endpoint);
  }

  /** A defect: the caller learns that there was an error and nothing more. */
  fail(): void {
    this.#respond(INTERNAL_ERROR, { endpoint: 'none', outcome: 'unavailable' });
  }

  /** An endpoint that server.toml turned off is a path the server does not have. */
  #isOff(endpoint: Endpoint): boolean {
    const { maxStreamConnections, hasOperators } = this.#service.roster;
    return (endpoint === 'stream' && maxStreamConnections === 0) || (endpoint === 'history' && !hasOperators);
  }

  /** The whole request target counts, with the host and the mount path. */
  get #isTooLong(): boolean {
    return (this.#request.url ?? '').length > URL_BYTES_MAX;
  }

  /** Undefined also when there are two: a gateway in front may have checked the other one. */
  get #authorization(): string | undefined {
    const { rawHeaders, headers } = this.#request;
    let lines = 0;
    for (let index = 0; index < rawHeaders.length; index += 2) {
      const name = rawHeaders[index]!;
      if (name.length === 13 && name.toLowerCase() === 'authorization') lines++;
    }
    return lines > 1 ? undefined : headers.authorization;
  }

  get #isRead(): boolean {
    return this.#request.method === 'GET' || this.#request.method === 'HEAD';
  }

  #probe(endpoint: 'healthz' | 'readyz'): void {
    if (endpoint === 'healthz') return this.#respond(ALIVE, { endpoint, outcome: 'served' });
    const { ready } = this.#service;
    return this.#respond(ready ? READY : NOT_READY, { endpoint, outcome: ready ? 'served' : 'unavailable' });
  }

  #metrics(credential: Credential): void {
    const readable = [...this.#service.roster.sections.values()].filter((section) =>
      isGranted(credential.applications, section.definition.application, section.key),
    );
    const body = Buffer.from(renderMetrics(readable));
    this.#respond(responseWith(200, METRICS_CONTENT_TYPE, body), { endpoint: 'metrics', outcome: 'served', caller: credential.name });
  }

  /** Shape, then grant and section. Whatever fails, the section map was consulted and the response is the same 404. */
  #section(route: SectionRoute, credential: Credential): void {
    const application = decodeSegment(route.application);
    const profile = decodeSegment(route.profile);
    const path = decodeKeyPath(route.path);
    const wellFormed = application !== undefined && profile !== undefined && path !== undefined;
    const key = wellFormed ? sectionKey(application, profile) : '/';
    const section = this.#service.roster.sections.get(key);
    const { endpoint } = route;
    const caller = credential.name;
    if (!wellFormed) return this.#respond(NOT_FOUND, { endpoint, outcome: 'malformed', caller });
    const granted = isGranted(credential.applications, application, key) && (endpoint !== 'history' || credential.operator);
    if (!granted || section === undefined) {
      return this.#respond(NOT_FOUND, { endpoint, outcome: 'not-found', caller, application, profile });
    }
    return this.#serve(endpoint, section, credential, path);
  }

  #serve(endpoint: SectionEndpoint, section: Section, credential: Credential, path: string): void {
    switch (endpoint) {
      case 'document':
        return this.#document(section, credential);
      case 'paths':
        return this.#served(endpoint, section, credential, pathsResponse(section));
      case 'explain':
        return this.#served(endpoint, section, credential, explainResponse(section, path));
      case 'status':
        return this.#served(endpoint, section, credential, statusResponse(section, this.#service.now()));
      case 'history':
        return this.#served(endpoint, section, credential, historyResponse(section));
      case 'check':
        return this.#later(
          endpoint,
          section,
          credential,
          this.#service.dryRun(() => checkResponse(section)),
        );
      case 'stream':
        return this.#stream(section, credential);
      default:
        return endpoint satisfies never;
    }
  }

  #document(section: Section, credential: Credential): void {
    const { installed } = section;
    const response = documentResponse(installed, this.#request.headers);
    if (response instanceof Promise) return this.#later('document', section, credential, response, installed.generation);
    return this.#served('document', section, credential, response, installed.generation);
  }

  #stream(section: Section, credential: Credential): void {
    const { application, profile } = section.definition;
    const { roster, audit, streams, stopping } = this.#service;
    const record = { endpoint: 'stream', caller: credential.name, application, profile } as const;
    // A stream opened now would stay open and delay the stop until its deadline.
    if (stopping || streams.open >= roster.maxStreamConnections) {
      return this.#respond(STREAMS_EXHAUSTED, { ...record, outcome: 'unavailable' });
    }
    this.#record({ ...record, generation: section.installed.generation, outcome: 'served' }, 200);
    if (this.#request.method === 'HEAD') {
      return audit.afterFlush(() => sendResponse(this.#response, { status: 200, headers: STREAM_HEADERS, body: '' }, true, true));
    }
    return audit.afterFlush(streams.reserve(section, credential, this.#response));
  }

  #served(
    endpoint: Endpoint,
    section: Section,
    credential: Credential,
    response: HttpResponse,
    generation = section.installed.generation,
  ): void {
    const { application, profile } = section.definition;
    const outcome = response.status === 304 ? 'not-modified' : 'served';
    this.#respond(response, { endpoint, outcome, caller: credential.name, application, profile, generation });
  }

  #later(endpoint: Endpoint, section: Section, credential: Credential, response: Promise<HttpResponse>, generation?: number): void {
    response.then(
      (ready) => this.#served(endpoint, section, credential, ready, generation),
      () => this.fail(),
    );
  }

  #respond(response: HttpResponse, record: AuditRecord): void {
    this.#record(record, response.status);
    this.#service.audit.afterFlush(() => sendResponse(this.#response, response, this.#request.method === 'HEAD', !this.#service.stopping));
  }

  /** Writes the audit line, and the span with tracing. The trace id of an unauthenticated request is not recorded. */
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
