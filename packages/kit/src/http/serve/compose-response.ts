import { Readable } from 'node:stream';
import { coreErrors } from '../../errors/core-errors.ts';
import { answerFactsOf } from '../compile/answer-facts.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { Handling } from '../input/handling.ts';
import { conditionalText } from '../respond/conditional-request.ts';
import type { RoutePlan } from './route-plan.ts';

/** An answer before it leaves. */
export interface ComposedAnswer {
  /** Undefined: there is none. */
  readonly body: unknown;
  /** What leaves instead of the body, where middleware changed it. */
  readonly sent?: string;
  readonly contentType: string | undefined;
}

export const JSON_TEXT = 'application/json; charset=utf-8';

const NO_BODY: ComposedAnswer = { body: undefined, contentType: undefined };

/** Everything about an answer that depends on its value. Undefined when the request was answered already. */
export function compose(plan: RoutePlan, exchange: Exchange, context: Handling, value: unknown): ComposedAnswer | undefined {
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

export function changedBody({ onBody }: RoutePlan, exchange: Exchange, body: string): string {
  return onBody.reduce((text, middleware) => middleware.onBody?.(exchange, text) ?? text, body);
}

/** What is kept of an answer: its status, the headers that the operation set, and its body where that is a text or bytes. */
export function keptAnswer({ reply }: Exchange, before: object, { body, contentType }: ComposedAnswer) {
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

const noText = (): string => '';

/** A stream that is not read keeps its file or connection open. */
export function discard(value: unknown): void {
  if (value instanceof Readable) value.on('error', () => undefined).destroy();
}
