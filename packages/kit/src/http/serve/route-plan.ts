import type { FastifyRequest } from 'fastify';
import { challengesOf } from '../../auth/request/authenticate.ts';
import { safeMethods } from '../../permissions/built-ins.ts';
import type { SpanOptions } from '../../observe/tracing.ts';
import { admissionStages, type Stage } from '../admit/admission.ts';
import type { Input } from '../declare/input.ts';
import type { Route } from '../declare/route.ts';
import type { CompiledRoute, RouteSchema } from '../exchange/compiled-route.ts';
import { enclosureOf, type Enclosure } from '../exchange/enclosure.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { Host } from '../exchange/host.ts';
import type { Middleware } from '../exchange/middleware.ts';
import { compileInput } from '../input/read-input.ts';
import { compileSerializer, type Serializer } from '../json/project.ts';
import type { AnswerPlan } from '../respond/answer.ts';
import { compileResponseCheck, type ResponseCheck } from '../respond/response-check.ts';

/** Where a request's exchange is kept on Fastify's request object. */
export const exchangeKey: unique symbol = Symbol('kit.exchange');

export type KitRequest = FastifyRequest & { [exchangeKey]: Exchange };

/** Everything about a route that can be decided before its first request. */
export interface RoutePlan extends AnswerPlan {
  readonly route: CompiledRoute;
  readonly handler: Route['handler'];
  /** The same route as a stream, for callers that accept `text/event-stream`. */
  readonly live: CompiledRoute | undefined;
  /** Nothing is wrapped around the handler or its response, by the application or by middleware. */
  readonly isUnwrapped: boolean;
  readonly stages: readonly Stage[];
  readonly readInput: (exchange: Exchange) => Input | Promise<Input>;
  /** Its callers read the primary afterwards. Only where there are replicas. */
  readonly mayWrite: boolean;
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

/** Decides once what can be decided before the first request. */
export function planRoute(host: Host, route: CompiledRoute, middleware: readonly Middleware[]): RoutePlan {
  const { handler } = route.route;
  return {
    route,
    handler,
    live: route.live === undefined ? undefined : { ...route, kind: 'stream', response: route.live },
    isUnwrapped: route.route.isUnwrapped === true && middleware.every((each) => each.handle === undefined && each.onBody === undefined),
    stages: admissionStages(route, middleware),
    readInput: compileInput(route),
    mayWrite: host.replicas !== null && !route.isRead && !safeMethods.has(route.method),
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
}

function answerSerializer(response: RouteSchema | undefined, { responseChecks }: Host): AnswerSerializer | undefined {
  return response === undefined
    ? undefined
    : { text: compileSerializer(response.json), check: compileResponseCheck(response.json, responseChecks) };
}

function handlerSpan({ controller, field }: CompiledRoute): RoutePlan['span'] {
  const name = `${controller}.${field}`;
  return { name: `handler ${name}`, options: { attributes: { 'code.function.name': name } } };
}
