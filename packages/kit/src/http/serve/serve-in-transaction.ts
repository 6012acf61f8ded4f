import type { FastifyReply } from 'fastify';
import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import type { Db } from '../../db/engine/db.ts';
import { runCausing } from '../../db/engine/long-statement.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { IdempotencyPlan } from '../declare/idempotent-options.ts';
import type { CompiledRoute } from '../exchange/compiled-route.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { claimRequest, IdempotentRequest } from '../idempotency/idempotent-request.ts';
import { Handling } from '../input/handling.ts';
import { renderFailure, sendFailure } from '../respond/answer.ts';
import { type ComposedAnswer, compose, keptAnswer } from './compose-response.ts';
import type { RoutePlan } from './route-plan.ts';
import { runHandler } from './run-handler.ts';
import { send, replay, answer } from './send-response.ts';

/** A request without a key runs as if there were none, where none is required. */
export function mayClaim({ idempotency }: CompiledRoute, { headers }: Exchange): boolean {
  return idempotency !== undefined && (idempotency.isRequired || headers['idempotency-key'] !== undefined);
}

/**
 * The handler in one transaction: its response is made inside, and sent after the commit. What an idempotency key came to is saved in the same
 * transaction, so that no crash can part the two.
 */
export async function serveInTransaction(plan: RoutePlan, exchange: Exchange, context: Handling): Promise<void> {
  const { route } = plan;
  const claimed =
    route.idempotency === undefined
      ? undefined
      : await claimRequest(exchange, route.idempotency, async () => route.route.audience?.(context) ?? '');
  if (claimed !== undefined && !(claimed instanceof IdempotentRequest)) return replay(plan, exchange, claimed);
  if (claimed === undefined && route.atomic === undefined)
    return answer(plan, exchange, context, await runHandler(plan, exchange, context));
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
      const composed = compose(plan, exchange, repeated, await runHandler(plan, exchange, repeated));
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

export async function refuseOnce(plan: RoutePlan, exchange: Exchange, idempotency: IdempotencyPlan, error: unknown): Promise<void> {
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
