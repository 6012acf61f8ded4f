import { AsyncResource } from 'node:async_hooks';
import { isUtf8 } from 'node:buffer';
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest, RouteOptions as FastifyRouteOptions } from 'fastify';
import { challengesOf } from '../../auth/request/authenticate.ts';
import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import type { Db } from '../../db/engine/db.ts';
import { runCausing } from '../../db/engine/long-statement.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { isKitError } from '../../errors/kit-error.ts';
import { inSpan, type SpanOptions } from '../../observe/tracing.ts';
import { runActing } from '../exchange/acting-request.ts';
import { admissionStages, runStages, type Stage } from '../admit/admission.ts';
import { fail, prepareHeaders, renderFailure, sendFailure, type AnswerPlan } from '../respond/answer.ts';
import { answerFactsOf } from '../compile/answer-facts.ts';
import { pacedStreams } from '../exchange/client-pace.ts';
import { conditionalText, requirePrecondition } from '../respond/conditional-request.ts';
import type { CompiledRoute, RouteSchema } from '../exchange/compiled-route.ts';
import { enclosureOf, type Enclosure } from '../exchange/enclosure.ts';
import { Exchange } from '../exchange/exchange.ts';
import { Handling } from '../input/handling.ts';
import { claimRequest, IdempotentRequest, type Replay } from '../idempotency/idempotent-request.ts';
import type { IdempotencyPlan } from '../declare/idempotent-options.ts';
import type { Host } from '../exchange/host.ts';
import { compileSerializer, type Serializer } from '../json/project.ts';
import type { MadeResponse, Middleware } from '../exchange/middleware.ts';
import { bodyError, closeUnreadBody } from '../input/read-raw-body.ts';
import type { Input } from '../declare/input.ts';
import { compileInput } from '../input/read-input.ts';
import { compileResponseCheck, type ResponseCheck } from '../respond/response-check.ts';
import type { Route } from '../declare/route.ts';
import { sendStream } from '../respond/send-stream.ts';
import type { ServerSentEvent } from '../declare/server-sent-event.ts';

/** Where a request's exchange is kept on Fastify's request object. */
export const exchangeKey: unique symbol = Symbol('kit.exchange');
export type KitRequest = FastifyRequest & { [exchangeKey]: Exchange };

/** Everything about a route that can be decided before its first request. */
interface RoutePlan extends AnswerPlan {
  readonly route: CompiledRoute;
  readonly handler: Route['handler'];
  /** Nothing is wrapped around the handler or its response, by the application or by middleware. */
  readonly isUnwrapped: boolean;
  readonly stages: readonly Stage[];
  readonly readInput: (exchange: Exchange) => Input | Promise<Input>;
  readonly serialize: AnswerSerializer | undefined;
  /** Of the answers declared for other statuses than the route's own; undefined where such an answer has no body. */
  readonly others: ReadonlyMap<number, AnswerSerializer | undefined>;
  /** Of the data of a stream's events. */
  readonly checkEvent: ResponseCheck | undefined;
  readonly around: readonly Middleware[];
  readonly onBody: readonly Middleware[];
  /** At most one: it answers for the whole route. */
  readonly respond: Middleware | undefined;
  readonly onFinish: readonly Middleware[];
  readonly enclosure: Enclosure | undefined;
  /** No body is read between admission and handling, so that one async context lasts for both: entering a second costs 3 % of a small GET. */
  readonly isEnteredOnce: boolean;
  /** Of the handler, in traces. */
  readonly span: { readonly name: string; readonly options: SpanOptions };
}

interface AnswerSerializer {
  readonly text: Serializer;
  readonly check: ResponseCheck | undefined;
}

function answerSerializer(response: RouteSchema | undefined, { responseChecks }: Host): AnswerSerializer | undefined {
  return response === undefined
    ? undefined
    : { text: compileSerializer(response.json), check: compileResponseCheck(response.json, responseChecks) };
}

/** Compiles one operation to a Fastify route: admission in `onRequest`, before the body is read; everything else in the handler. */
export function serveRoute(host: Host, route: CompiledRoute, middleware: readonly Middleware[]): FastifyRouteOptions {
  const { handler } = route.route;
  const plan: RoutePlan = {
    route,
    handler,
    isUnwrapped: route.route.isUnwrapped === true && middleware.every((each) => each.handle === undefined && each.onBody === undefined),
    stages: admissionStages(route, middleware),
    readInput: compileInput(route),
    serialize: route.kind === 'json' ? answerSerializer(route.response, host) : undefined,
    others: new Map(
      Object.entries(route.responses)
        .filter(([status]) => Number(status) !== route.status)
        .map(([status, { response }]) => [Number(status), answerSerializer(response, host)]),
    ),
    checkEvent:
      route.kind === 'stream' && route.response !== undefined ? compileResponseCheck(route.response.json, host.responseChecks) : undefined,
    around: middleware.filter((each) => each.handle !== undefined),
    onResponse: middleware.filter((each) => each.onResponse !== undefined),
    onBody: middleware.filter((each) => each.onBody !== undefined),
    respond: middleware.find((each) => each.respond !== undefined),
    onFinish: middleware.filter((each) => each.onFinish !== undefined),
    enclosure: enclosureOf(middleware),
    isEnteredOnce: route.method === 'GET',
    span: handlerSpan(route),
    errors: route.errors,
    challenges: challengesOf(route.authenticators),
  };
  return {
    method: route.method,
    url: route.path,
    bodyLimit: route.bodyBytesMax,
    // A stream has no HEAD: its headers depend on its first event.
    exposeHeadRoute: route.method === 'GET' && route.kind !== 'stream',
    onRequest: (request, reply, proceed) => admit(host, plan, request, reply, proceed),
    ...(route.rawBody === undefined ? {} : { onSend: closeUnreadBody }),
    handler: handlerOf(plan),
    errorHandler: (error, request) => refuseBody(plan, request as KitRequest, error),
  };
}

function handlerSpan({ controller, field }: CompiledRoute): RoutePlan['span'] {
  const name = `${controller}.${field}`;
  return { name: `handler ${name}`, options: { attributes: { 'code.function.name': name } } };
}

function admit(host: Host, plan: RoutePlan, request: FastifyRequest, reply: FastifyReply, proceed: () => void): void {
  const exchange = new Exchange(host, plan.route, request, reply);
  (request as KitRequest)[exchangeKey] = exchange;
  const { enclosure, stages } = plan;
  if (plan.onFinish.length > 0) reply.raw.once('close', () => finish(exchange, plan.onFinish, enclosure));
  const refuse = (error: unknown): void => fail(exchange, plan, error);
  try {
    if (enclosure === undefined) goOn(runStages(stages, exchange), proceed, refuse);
    else if (plan.isEnteredOnce) enclosure(exchange, 'admission', () => goOn(runStages(stages, exchange), proceed, refuse));
    // Fastify goes on outside: it loses the async context while it reads the body, so handling enters it again.
    else
      goOn(
        enclosure(exchange, 'admission', () => runStages(stages, exchange)),
        proceed,
        refuse,
      );
  } catch (error) {
    refuse(error);
  }
}

function goOn(admitted: Promise<void> | undefined, proceed: () => void, refuse: (error: unknown) => void): void {
  if (admitted === undefined) proceed();
  else void admitted.then(() => proceed(), refuse);
}

/** Tells the middleware that the answer is over. What one of them throws is logged: the response has left. */
export function finish(exchange: Exchange, onFinish: readonly Middleware[], enclosure: Enclosure | undefined): void {
  if (enclosure === undefined) finishAll(exchange, onFinish);
  else enclosure(exchange, 'finish', () => finishAll(exchange, onFinish));
}

function finishAll(exchange: Exchange, onFinish: readonly Middleware[]): void {
  for (const middleware of onFinish) {
    try {
      middleware.onFinish?.(exchange);
    } catch (error) {
      exchange.log.error({ err: error, middleware: middleware.name }, 'middleware failed after the response');
    }
  }
}

function refuseBody(plan: RoutePlan, request: KitRequest, error: unknown): void {
  const { [exchangeKey]: exchange } = request;
  const refuse = () => fail(exchange, plan, bodyError(error, request, plan.route.bodyBytesMax));
  if (plan.enclosure === undefined) refuse();
  else plan.enclosure(exchange, 'handling', refuse);
}

function handlerOf(plan: RoutePlan): (request: FastifyRequest, reply: FastifyReply) => void {
  const { enclosure } = plan;
  if (enclosure === undefined || plan.isEnteredOnce) return (request, reply) => handle(plan, (request as KitRequest)[exchangeKey], reply);
  return (request, reply) => {
    const exchange = (request as KitRequest)[exchangeKey];
    enclosure(exchange, 'handling', () => handle(plan, exchange, reply));
  };
}

/** Fastify waits for `reply.send` because nothing is returned; there is no promise unless the handler makes one. */
function handle(plan: RoutePlan, exchange: Exchange, reply: FastifyReply): void {
  const { route } = plan;
  if (route.status !== 200) reply.code(route.status);
  if (route.timeoutMs > 0) limitTime(exchange, plan);
  try {
    const input = plan.readInput(exchange);
    if (input instanceof Promise)
      input.then((settled) => invoke(plan, exchange, settled)).catch((error: unknown) => refuseInput(plan, exchange, error));
    else invoke(plan, exchange, input);
  } catch (error) {
    refuseInput(plan, exchange, error);
  }
}

/** With an idempotency key, what the schema refuses is kept like what the handler refuses: a repetition gets the same response. */
function refuseInput(plan: RoutePlan, exchange: Exchange, error: unknown): void {
  const { idempotency } = plan.route;
  if (idempotency === undefined || exchange.headers['idempotency-key'] === undefined || !isKitError(error, 'validation_error'))
    fail(exchange, plan, error);
  else refuseOnce(plan, exchange, idempotency, error).catch((failure: unknown) => fail(exchange, plan, failure));
}

async function refuseOnce(plan: RoutePlan, exchange: Exchange, idempotency: IdempotencyPlan, error: unknown): Promise<void> {
  const context = new Handling(exchange, { params: exchange.request.params, query: {}, headers: {}, cookies: {}, body: undefined });
  const claimed = await claimRequest(exchange, idempotency, async () => plan.route.route.audience?.(context) ?? '');
  if (claimed instanceof IdempotentRequest) await refuseClaimed(plan, exchange, claimed, error);
  else if (claimed !== undefined) replay(plan, exchange, claimed);
}

async function refuseClaimed(plan: RoutePlan, exchange: Exchange, claimed: IdempotentRequest, error: unknown): Promise<void> {
  const isAnswered = exchange.reply.sent || exchange.reply.raw.headersSent;
  const rendered = renderFailure(exchange, plan, error);
  await claimed.failed(rendered, error);
  if (!isAnswered) sendFailure(exchange, plan, rendered);
}

function limitTime(exchange: Exchange, plan: RoutePlan): void {
  const { timeoutMs, operationId } = plan.route;
  const expire = exchange.limit();
  const timer = setTimeout(() => {
    const error = coreErrors.deadline_exceeded({ message: `${operationId} took longer than ${timeoutMs} ms` });
    expire(error);
    fail(exchange, plan, error);
  }, timeoutMs);
  exchange.reply.raw.once('close', () => clearTimeout(timer));
}

function invoke(plan: RoutePlan, exchange: Exchange, input: Input): void {
  const { route } = plan;
  requirePrecondition(exchange);
  const context = new Handling(exchange, input);
  if (route.kind === 'stream') {
    // Its generator runs while the events are sent, and so does the span of the handler.
    const send = (): Promise<void> =>
      sendStream(exchange, plan, route.route.handler(context) as AsyncIterable<ServerSentEvent>, plan.checkEvent);
    inSpan(plan.span.name, plan.span.options, send).catch((error: unknown) => fail(exchange, plan, error));
    return;
  }
  const isInTransaction = route.atomic !== undefined || mayClaim(route, exchange);
  const isMade = !isInTransaction && plan.respond !== undefined && route.idempotency === undefined;
  const isSentInside = isInTransaction || isMade;
  const result = isInTransaction
    ? serveAtomic(plan, exchange, context)
    : isMade
      ? serveMade(plan, plan.respond, exchange, context)
      : run(plan, exchange, context);
  if (isThenable(result)) {
    const { blocking } = exchange.host;
    blocking.entered(route);
    result
      .then((value) => (isSentInside ? undefined : answer(plan, exchange, context, value)))
      .then(
        () => blocking.left(route),
        (error: unknown) => {
          blocking.left(route);
          fail(exchange, plan, error);
        },
      );
  } else if (!isSentInside) answer(plan, exchange, context, result);
}

/** A request without a key runs as if there were none, where none is required. */
function mayClaim({ idempotency }: CompiledRoute, { headers }: Exchange): boolean {
  return idempotency !== undefined && (idempotency.isRequired || headers['idempotency-key'] !== undefined);
}

function run(plan: RoutePlan, exchange: Exchange, context: Handling): unknown {
  return plan.around.length > 0 ? runAround(plan, exchange, context) : callHandler(plan, exchange, context);
}

/**
 * The handler in one transaction: its response is made inside, and sent after the commit. What an idempotency key came to is saved in the same
 * transaction, so that no crash can part the two.
 */
async function serveAtomic(plan: RoutePlan, exchange: Exchange, context: Handling): Promise<void> {
  const { route } = plan;
  const claimed =
    route.idempotency === undefined
      ? undefined
      : await claimRequest(exchange, route.idempotency, async () => route.route.audience?.(context) ?? '');
  if (claimed !== undefined && !(claimed instanceof IdempotentRequest)) return replay(plan, exchange, claimed);
  if (claimed === undefined && route.atomic === undefined) return answer(plan, exchange, context, await run(plan, exchange, context));
  try {
    const composed = await inTransaction(plan, exchange, context, claimed && ((tx, answer) => claimed.complete(tx, answer)));
    claimed?.completed();
    send(plan, exchange, composed);
  } catch (error) {
    if (claimed === undefined) throw error;
    await refuseClaimed(plan, exchange, claimed, error);
  }
}

async function inTransaction(
  plan: RoutePlan,
  exchange: Exchange,
  context: Handling,
  complete: ((tx: Db, answer: ReturnType<typeof keptAnswer>) => Promise<void>) | undefined,
): Promise<ComposedAnswer> {
  const { reply, verdict } = exchange;
  const headers = reply.getHeaders();
  const { statusCode } = reply;
  try {
    let isRepeated = false;
    let repeated = context;
    const serve = async (tx: Db): Promise<ComposedAnswer> => {
      // The work may run again after a conflict: what the first attempt said about its answer is forgotten.
      if (isRepeated) {
        resetReply(exchange, headers, statusCode);
        exchange.verdict = verdict;
        exchange.etag = undefined;
        exchange.isMatchDecided = false;
        // A body that is a stream was read by the first attempt.
        repeated = new Handling(exchange, await plan.readInput(exchange));
      }
      isRepeated = true;
      exchange.tx = tx;
      exchange.ownsTransaction = plan.isUnwrapped;
      const composed = compose(plan, exchange, repeated, await run(plan, exchange, repeated));
      // The deadline has answered: nothing of the request may stay.
      if (composed === undefined) throw coreErrors.deadline_exceeded();
      await complete?.(tx, keptAnswer(exchange, headers, composed));
      return composed;
    };
    // Generic CRUD has no `atomic`: its work may be repeated.
    return await runCausing(exchange, () => exchange.host.db.transaction(serve, plan.route.atomic ?? CONFLICT_RETRIES));
  } finally {
    exchange.leaveTransaction();
  }
}

/** What an attempt that was rolled back said about its response is forgotten. */
function resetReply({ reply }: Exchange, headers: ReturnType<FastifyReply['getHeaders']>, statusCode: number): void {
  for (const name of Object.keys(reply.getHeaders())) if (!(name in headers)) reply.removeHeader(name);
  reply.headers(headers).code(statusCode);
}

/** The response comes from the handler, or from a middleware that kept one. */
async function serveMade(plan: RoutePlan, middleware: Middleware, exchange: Exchange, context: Handling): Promise<void> {
  const headers = { ...exchange.reply.getHeaders() };
  let made: { readonly composed: ComposedAnswer | undefined } | undefined;
  const make = async (): Promise<MadeResponse | undefined> => {
    const composed = compose(plan, exchange, context, await run(plan, exchange, context));
    made = { composed };
    if (composed === undefined) return undefined;
    const { body, ...kept } = keptAnswer(exchange, headers, composed);
    return body === null ? undefined : { ...kept, body };
  };
  const response = await middleware.respond?.(exchange, make, async () => plan.route.route.audience?.(context) ?? '');
  if (made !== undefined && (response === undefined || response.status === exchange.reply.statusCode)) {
    if (made.composed !== undefined) send(plan, exchange, made.composed);
  } else if (response !== undefined) sendMade(plan, exchange, response);
}

/** What is kept of an answer: its status, the headers that the operation set, and its body where that is a text or bytes. */
function keptAnswer({ reply }: Exchange, before: object, { body, contentType }: ComposedAnswer) {
  const headers: Record<string, string | string[]> = {};
  const all = reply.getHeaders();
  for (const name in all) {
    const value = all[name];
    if (value !== undefined && (before as Readonly<Record<string, unknown>>)[name] !== value)
      headers[name] = Array.isArray(value) ? value : String(value);
  }
  if (contentType !== undefined) headers['content-type'] ??= contentType;
  const kept =
    body === undefined ? Buffer.alloc(0) : typeof body === 'string' ? Buffer.from(body) : body instanceof Uint8Array ? body : null;
  return { status: reply.statusCode, headers, body: kept };
}

/** The response of the first attempt, byte by byte. */
function replay(plan: RoutePlan, exchange: Exchange, { status, headers, body }: Replay): void {
  const { reply } = exchange;
  if (reply.sent || reply.raw.headersSent) return;
  reply.header('idempotent-replayed', 'true');
  sendMade(plan, exchange, { status, headers, body });
}

function sendMade(plan: RoutePlan, exchange: Exchange, { status, headers, body }: MadeResponse): void {
  const { reply } = exchange;
  if (reply.sent || reply.raw.headersSent) return;
  reply.code(status).headers(headers);
  prepareHeaders(exchange, plan);
  if (headers['content-type'] !== undefined) reply.header('content-type', headers['content-type']);
  if (body.length === 0) reply.send();
  else if (isChangeable(plan, status, headers)) reply.send(changedBody(plan, exchange, textOf(body)));
  // As a text it leaves in one piece with the headers. Fastify adds the character set to other kinds of JSON, and bytes may be no text.
  else reply.send(headers['content-type'] === JSON_TEXT && isUtf8(body) ? textOf(body) : bytesOf(body));
}

const JSON_TEXT = 'application/json; charset=utf-8';

function bytesOf(body: Uint8Array): Buffer {
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
}

function textOf(body: Uint8Array): string {
  return bytesOf(body).toString();
}

/** Kept answers are kept as the handler gave them: another attempt may ask for another form. Errors are not changed. */
function isChangeable({ route, onBody }: RoutePlan, status: number, headers: Replay['headers']): boolean {
  return onBody.length > 0 && route.kind === 'json' && status < 400 && String(headers['content-type']).startsWith('application/json');
}

function changedBody({ onBody }: RoutePlan, exchange: Exchange, body: string): string {
  return onBody.reduce((text, middleware) => middleware.onBody?.(exchange, text) ?? text, body);
}

function callHandler(plan: RoutePlan, exchange: Exchange, context: Handling): unknown {
  return exchange.isRecorded
    ? inSpan(plan.span.name, plan.span.options, () => runHandler(plan, exchange, context))
    : runHandler(plan, exchange, context);
}

function runHandler({ route, handler }: RoutePlan, exchange: Exchange, context: Handling): unknown {
  const { blocking, audit } = exchange.host;
  const run = () => runCausing(exchange, () => (blocking.isOn ? blocking.run(route, handler, context) : handler(context)));
  // Reads record nothing that needs an actor; entering an async context costs 3 % of a small GET.
  return audit === null || SAFE_METHODS.has(route.method) ? run() : runActing(exchange, run);
}

const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'QUERY']);

function runAround(plan: RoutePlan, exchange: Exchange, context: Handling): Promise<unknown> {
  const run = async (index: number): Promise<unknown> => {
    const middleware = plan.around[index];
    if (middleware?.handle === undefined) return callHandler(plan, exchange, context);
    return middleware.handle(exchange, () => run(index + 1));
  };
  return run(0);
}

function answer(plan: RoutePlan, exchange: Exchange, context: Handling, value: unknown): void {
  const composed = compose(plan, exchange, context, value);
  if (composed !== undefined) send(plan, exchange, composed);
}

/** An answer before it leaves. */
interface ComposedAnswer {
  /** Undefined: there is none. */
  readonly body: unknown;
  /** What leaves instead of the body, where middleware changed it. */
  readonly sent?: string;
  readonly contentType: string | undefined;
}

const NO_BODY: ComposedAnswer = { body: undefined, contentType: undefined };

/** Everything about an answer that depends on its value. Undefined when the request was answered already. */
function compose(plan: RoutePlan, exchange: Exchange, context: Handling, value: unknown): ComposedAnswer | undefined {
  const { route } = plan;
  const { reply } = exchange;
  // The deadline answered already, or the handler did it itself.
  if (reply.sent || reply.raw.headersSent) {
    // A handler that answers itself may still be sending this very stream.
    if (exchange.signal.aborted) discard(value);
    return undefined;
  }
  if (exchange.verdict !== true) {
    discard(value);
    const facts = { operation: route.operationId, permission: route.permission.name };
    exchange.log.error(facts, 'handler returned without calling authorize(object); request denied');
    throw coreErrors.permission_denied();
  }
  const brought = answerFactsOf(value);
  if (brought !== undefined) reply.code(brought.status).headers(brought.headers);
  const serialize = plan.others.has(reply.statusCode) ? plan.others.get(reply.statusCode) : plan.serialize;
  const { finish: finishAnswer } = route.route;
  const text =
    finishAnswer !== undefined
      ? finishAnswer(context, value, serialize?.text ?? noText)
      : route.route.options.etag === undefined
        ? undefined
        : conditionalText(exchange, context, value, serialize?.text);
  if (text === null) return NO_BODY;
  if (serialize !== undefined) {
    const body = text ?? serialize.text(value);
    serialize.check?.(exchange, body);
    const contentType = JSON_TEXT;
    return plan.onBody.length === 0 ? { body, contentType } : { body, sent: changedBody(plan, exchange, body), contentType };
  }
  return route.kind === 'raw' ? { body: value, contentType: route.mediaType } : NO_BODY;
}

function send(plan: RoutePlan, exchange: Exchange, { body, sent, contentType }: ComposedAnswer): void {
  const { reply } = exchange;
  if (reply.sent || reply.raw.headersSent) return;
  prepareHeaders(exchange, plan);
  // What is not JSON may have said itself what it is.
  if (contentType !== undefined && (plan.route.kind === 'json' || !reply.hasHeader('content-type')))
    reply.header('content-type', contentType);
  if (exchange.method === 'HEAD' && body instanceof Readable) {
    // Fastify would read a stream to its end to throw it away.
    discard(body);
    reply.send(Readable.from([]));
    return;
  }
  if (body instanceof Readable) {
    if (plan.enclosure !== undefined) keepAsyncContext(body);
    if (!pacedStreams.has(body)) cutIdleClient(exchange);
  }
  if (body === undefined) reply.send();
  else reply.send(sent ?? body);
}

const noText = (): string => '';

/** A stream is read when its connection has room: what it does then, such as statements, still belongs to this request. */
function keepAsyncContext(stream: Readable): void {
  stream._read = AsyncResource.bind(stream._read.bind(stream));
}

/**
 * What is read to make the stream, a file or a query, is open for as long as the client likes. Node's timer starts over with every byte that
 * leaves; while the source has given nothing to send, the client is not waited for.
 */
function cutIdleClient({ reply: { raw }, host, log, route }: Exchange): void {
  const { clientIdleMs } = host.inputLimits;
  raw.setTimeout(clientIdleMs, () => {
    if (raw.writableLength === 0 && !raw.writableNeedDrain) return;
    log.warn({ operation: route?.operationId }, `a response was cut: its client took nothing for ${clientIdleMs} ms`);
    raw.destroy();
  });
}

/** A stream that is not read keeps its file or connection open. */
function discard(value: unknown): void {
  if (value instanceof Readable) value.on('error', () => undefined).destroy();
}

function isThenable(value: unknown): value is Promise<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as Partial<PromiseLike<unknown>>).then === 'function';
}

/** The exchange behind a request of a route: what permissions and throttles were asked with. */
export function exchangeOf(request: FastifyRequest): Exchange {
  return (request as KitRequest)[exchangeKey];
}
