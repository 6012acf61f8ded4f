import type { FastifyReply, FastifyRequest, RouteOptions as FastifyRouteOptions } from 'fastify';
import { runCausing } from '../../db/engine/long-statement.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { isKitError } from '../../errors/kit-error.ts';
import { inSpan } from '../../observe/tracing.ts';
import { runStages } from '../admit/admission.ts';
import type { Input } from '../declare/input.ts';
import type { LiveRoute } from '../declare/live-route.ts';
import type { ServerSentEvent } from '../declare/server-sent-event.ts';
import type { CompiledRoute } from '../exchange/compiled-route.ts';
import type { Enclosure } from '../exchange/enclosure.ts';
import { Exchange } from '../exchange/exchange.ts';
import type { Host } from '../exchange/host.ts';
import type { MadeResponse, Middleware } from '../exchange/middleware.ts';
import { Handling } from '../input/handling.ts';
import { bodyError, closeUnreadBody } from '../input/read-raw-body.ts';
import { fail } from '../respond/answer.ts';
import { requirePrecondition } from '../respond/conditional-request.ts';
import { sendStream } from '../respond/send-stream.ts';
import { type ComposedAnswer, compose, keptAnswer } from './compose-response.ts';
import { prefersEvents } from './prefers-events.ts';
import { exchangeKey, type KitRequest, type RoutePlan, planRoute } from './route-plan.ts';
import { runHandler } from './run-handler.ts';
import { send, sendMade, answer } from './send-response.ts';
import { mayClaim, serveInTransaction, refuseOnce } from './serve-in-transaction.ts';

/** Compiles one operation to a Fastify route: admission in `onRequest`, before the body is read; everything else in the handler. */
export function serveRoute(host: Host, route: CompiledRoute, middleware: readonly Middleware[]): FastifyRouteOptions {
  const plan = planRoute(host, route, middleware);
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

function admit(host: Host, plan: RoutePlan, request: FastifyRequest, reply: FastifyReply, proceed: () => void): void {
  const exchange = new Exchange(host, plan.route, request, reply);
  if (plan.live !== undefined) exchange.isLive = asksForEvents(exchange);
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
  if (route.timeoutMs > 0 && !exchange.isLive) limitTime(exchange, plan);
  if (plan.mayWrite) noteWrite(exchange);
  try {
    const input = plan.readInput(exchange);
    if (input instanceof Promise)
      input.then((settled) => invoke(plan, exchange, settled)).catch((error: unknown) => refuseInput(plan, exchange, error));
    else invoke(plan, exchange, input);
  } catch (error) {
    refuseInput(plan, exchange, error);
  }
}

/** Until its response is over, and a little longer, its caller reads no replica. */
function noteWrite({ host, reply, statementOwner }: Exchange): void {
  const end = host.replicas?.beginWrite(statementOwner);
  if (end !== undefined) reply.raw.once('close', end);
}

/** With an idempotency key, what the schema refuses is kept like what the handler refuses: a repetition gets the same response. */
function refuseInput(plan: RoutePlan, exchange: Exchange, error: unknown): void {
  const { idempotency } = plan.route;
  if (idempotency === undefined || exchange.headers['idempotency-key'] === undefined || !isKitError(error, 'validation_error'))
    fail(exchange, plan, error);
  else refuseOnce(plan, exchange, idempotency, error).catch((failure: unknown) => fail(exchange, plan, failure));
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
  const { live } = plan;
  if (exchange.isLive && live !== undefined) {
    // What it reads counts for its caller, as an ordinary list does.
    const send = (): Promise<void> =>
      runCausing(exchange, () => sendStream(exchange, plan, (live.route.live as LiveRoute).handler(context), undefined, live));
    inSpan(plan.span.name, plan.span.options, send).catch((error: unknown) => fail(exchange, plan, error));
    return;
  }
  const isInTransaction = route.atomic !== undefined || mayClaim(route, exchange);
  const isMade = !isInTransaction && plan.respond !== undefined && route.idempotency === undefined;
  const isSentInside = isInTransaction || isMade;
  const result = isInTransaction
    ? serveInTransaction(plan, exchange, context)
    : isMade
      ? serveMade(plan, plan.respond, exchange, context)
      : runHandler(plan, exchange, context);
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

/** Whether the caller asks for the events of a route that also has an ordinary response. */
function asksForEvents({ method, headers: { accept } }: Exchange): boolean {
  return method !== 'HEAD' && typeof accept === 'string' && prefersEvents(accept);
}

/** The response comes from the handler, or from a middleware that kept one. */
async function serveMade(plan: RoutePlan, middleware: Middleware, exchange: Exchange, context: Handling): Promise<void> {
  const headers = { ...exchange.reply.getHeaders() };
  let made: { readonly composed: ComposedAnswer | undefined } | undefined;
  const make = async (): Promise<MadeResponse | undefined> => {
    const composed = compose(plan, exchange, context, await runHandler(plan, exchange, context));
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

function isThenable(value: unknown): value is Promise<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as Partial<PromiseLike<unknown>>).then === 'function';
}

/** The exchange behind a request of a route: what permissions and throttles were asked with. */
export function exchangeOf(request: FastifyRequest): Exchange {
  return (request as KitRequest)[exchangeKey];
}
