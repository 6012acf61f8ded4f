import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AuditSink } from '../../auth/request/audit-sink.ts';
import type { Principal, User } from '../../auth/people/principal.ts';
import type { Clock } from '../../db/clock.ts';
import type { Database, Db } from '../../db/engine/db.ts';
import type { ServiceScope } from '../../di/container.ts';
import { authorize } from '../admit/admission.ts';
import type { Caller } from '../declare/caller.ts';
import type { CompiledRoute } from '../exchange/compiled-route.ts';
import { requireMatch, setTag } from '../respond/conditional-request.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { HandlerContext } from '../declare/handler-context.ts';
import type { Log } from '../log.ts';
import type { Input } from '../declare/input.ts';
import { requestAudit } from '../exchange/request-audit.ts';

/** The handler's view of an exchange: its validated input, and the rest when asked for. Made to be destructured. */
export class Handling implements HandlerContext {
  readonly params: unknown;
  readonly query: unknown;
  readonly headers: unknown;
  readonly cookies: unknown;
  readonly body: unknown;
  readonly #exchange: Exchange;

  constructor(exchange: Exchange, input: Input) {
    this.#exchange = exchange;
    this.params = input.params;
    this.query = input.query;
    this.headers = input.headers;
    this.cookies = input.cookies;
    this.body = input.body;
  }

  get user(): User | null {
    return this.#exchange.user;
  }

  get principal(): Principal | null {
    return this.#exchange.principal;
  }

  get db(): Database {
    return this.#exchange.handlerDb;
  }

  get tx(): Db {
    const { tx, route } = this.#exchange;
    if (tx !== undefined) return tx;
    throw new Error(`${route?.operationId ?? 'This route'} has no transaction: declare atomic: true, or open one with db.transaction(…).`);
  }

  get databases(): Readonly<Record<string, Database>> {
    return this.#exchange.host.databases;
  }

  get clock(): Clock {
    return this.#exchange.host.clock;
  }

  get log(): Log {
    return this.#exchange.log;
  }

  get requestId(): string {
    return this.#exchange.requestId;
  }

  get signal(): AbortSignal {
    return this.#exchange.signal;
  }

  get services(): ServiceScope {
    return this.#exchange.services;
  }

  get audit(): AuditSink {
    return requestAudit(this.#exchange);
  }

  get client(): { readonly address: string } {
    return { address: this.#exchange.clientAddress };
  }

  get authorize(): <T>(object: T) => Promise<NonNullable<T>> {
    const exchange = this.#exchange;
    return (object) => authorize(exchange, exchange.route as CompiledRoute, object);
  }

  get caller(): () => Promise<Caller> {
    const exchange = this.#exchange;
    return () => exchange.caller();
  }

  get etag(): (version: string | number) => void {
    const exchange = this.#exchange;
    return (version) => setTag(exchange, version);
  }

  get ifMatch(): (version: string | number) => void {
    const exchange = this.#exchange;
    return (version) => requireMatch(exchange, version);
  }

  get request(): FastifyRequest {
    return this.#exchange.request;
  }

  get reply(): FastifyReply {
    return this.#exchange.reply;
  }
}
