import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Endpoint, Outcome } from '../audit/audit-entry.ts';
import { isGranted } from '../config/grant.ts';
import { sectionKey } from '../section/definition.ts';
import type { Section } from '../section/section.ts';
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

  constructor(service: Service, request: IncomingMessage, response: ServerResponse) {
    this.#service = service;
    this.#request = request;
    this.#response = response;
  }

  handle(url: string): void {
    if ((this.#request.url ?? '').length > URL_BYTES_MAX) return this.#answer(URI_TOO_LONG, 'none', 'malformed');
    const route = routeOf(url);
    if (route === undefined || (route.endpoint === 'stream' && this.#service.roster.maxStreamConnections === 0)) {
      return this.#answer(NOT_FOUND, 'none', 'not-found');
    }
    if (!this.#isRead) return this.#answer(METHOD_NOT_ALLOWED, route.endpoint, 'method-not-allowed');
    if (route.endpoint === 'healthz' || route.endpoint === 'readyz') return this.#probe(route.endpoint);
    const credential = this.#service.roster.tokens.find(this.#request.headers.authorization, this.#request.socket);
    if (credential === undefined) return this.#answer(UNAUTHENTICATED, route.endpoint, 'unauthenticated');
    if (route.endpoint === 'metrics') return this.#metrics(credential);
    return this.#section(route as SectionRoute, credential);
  }

  handleHealthOnly(url: string): void {
    if (url.length > URL_BYTES_MAX) return this.#answer(URI_TOO_LONG, 'none', 'malformed');
    const endpoint = routeOf(url)?.endpoint;
    if (endpoint !== 'healthz' && endpoint !== 'readyz') return this.#answer(NOT_FOUND, 'none', 'not-found');
    if (!this.#isRead) return this.#answer(METHOD_NOT_ALLOWED, endpoint, 'method-not-allowed');
    return this.#probe(endpoint);
  }

  /** Something that should not happen did: the caller learns that and nothing more. */
  fail(): void {
    this.#answer(INTERNAL_ERROR, 'none', 'unavailable');
  }

  get #isRead(): boolean {
    return this.#request.method === 'GET' || this.#request.method === 'HEAD';
  }

  #probe(endpoint: 'healthz' | 'readyz'): void {
    if (endpoint === 'healthz') return this.#answer(ALIVE, endpoint, 'served');
    const { ready } = this.#service;
    return this.#answer(ready ? READY : NOT_READY, endpoint, ready ? 'served' : 'unavailable');
  }

  #metrics(credential: Credential): void {
    const readable = [...this.#service.roster.sections.values()].filter((section) =>
      isGranted(credential.applications, section.definition.application, section.key),
    );
    const body = Buffer.from(renderMetrics(readable));
    this.#answer(answerWith(200, METRICS_CONTENT_TYPE, body), 'metrics', 'served', credential);
  }

  /** Shape, then grant and section. Whatever fails, the section map was consulted and the answer is the same 404. */
  #section(route: SectionRoute, credential: Credential): void {
    const application = decodeSegment(route.application);
    const profile = decodeSegment(route.profile);
    const path = decodeKeyPath(route.path);
    const wellFormed = application !== undefined && profile !== undefined && path !== undefined;
    const key = wellFormed ? sectionKey(application, profile) : '/';
    const section = this.#service.roster.sections.get(key);
    if (!wellFormed) return this.#answer(NOT_FOUND, route.endpoint, 'malformed', credential);
    const granted = isGranted(credential.applications, application, key);
    if (!granted || section === undefined) return this.#answer(NOT_FOUND, route.endpoint, 'not-found', credential, application, profile);
    return this.#serve(route.endpoint, section, credential, path);
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
    // A stream opened now would outlive the ending of streams and hold the stop up to its deadline.
    if (stopping || streams.open >= roster.maxStreamConnections) {
      return this.#answer(STREAMS_EXHAUSTED, 'stream', 'unavailable', credential, application, profile, section.installed.generation);
    }
    audit.record('stream', 'served', credential.name, application, profile, section.installed.generation);
    if (this.#request.method === 'HEAD') {
      return audit.thenAnswer(() =>
        sendAnswer(this.#response, { status: 200, headers: STREAM_HEADERS, body: Buffer.alloc(0) }, true, true),
      );
    }
    return audit.thenAnswer(streams.reserve(section, credential, this.#response));
  }

  #served(endpoint: Endpoint, section: Section, credential: Credential, answer: Answer, generation = section.installed.generation): void {
    const { application, profile } = section.definition;
    this.#answer(answer, endpoint, answer.status === 304 ? 'not-modified' : 'served', credential, application, profile, generation);
  }

  #later(endpoint: Endpoint, section: Section, credential: Credential, answer: Promise<Answer>, generation?: number): void {
    answer.then(
      (ready) => this.#served(endpoint, section, credential, ready, generation),
      () => this.fail(),
    );
  }

  #answer(
    answer: Answer,
    endpoint: Endpoint,
    outcome: Outcome,
    credential?: Credential,
    application: string | null = null,
    profile: string | null = null,
    generation: number | null = null,
  ): void {
    const { audit } = this.#service;
    audit.record(endpoint, outcome, credential?.name ?? null, application, profile, generation);
    audit.thenAnswer(() => sendAnswer(this.#response, answer, this.#request.method === 'HEAD', !this.#service.stopping));
  }
}
