import { randomUUID } from 'node:crypto';
import type { Database, Db } from '../../db/db.ts';
import { hasCode, type KitError } from '../../errors/kit-error.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { RenderedError } from '../../errors/render.ts';
import type { CompiledRoute } from '../compiled-route.ts';
import type { Exchange } from '../exchange.ts';
import { idempotencyErrors } from './errors.ts';
import type { IdempotencyPlan } from './options.ts';
import type { IdempotencyOutcome } from './outcome.ts';
import {
  type Claim,
  claimKey,
  claimOrFind,
  completeClaim,
  completeInTransaction,
  type FoundRecord,
  isAbandoned,
  type KeptAnswer,
  LEASE_MS,
  prolongClaim,
  releaseClaim,
} from './record-store.ts';
import { audienceOf, callerText, fingerprintOf, type IdentifiedRequest, readKey, scopeHash } from './request-identity.ts';

/** Larger bodies are not kept. */
export const BODY_BYTES_MAX = 256 * 1024;
/** 401 and 403 are decided again at every attempt; the others say "not now". */
const NOT_KEPT: ReadonlySet<number> = new Set([401, 403, 408, 412, 428, 429]);

/** An answer that was sent before. */
export interface Replay {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body: Uint8Array;
}

/** One request with an idempotency key that may run: it holds the claim. */
export class IdempotentRequest {
  readonly #exchange: Exchange;
  readonly #db: Database;
  readonly #claim: Claim;
  readonly #audience: string;
  readonly #keepsResponse: boolean;
  #prolonging: NodeJS.Timeout | undefined;

  constructor(exchange: Exchange, claim: Claim, audience: string, keepsResponse: boolean) {
    this.#exchange = exchange;
    this.#db = exchange.host.db;
    this.#claim = claim;
    this.#audience = audience;
    this.#keepsResponse = keepsResponse;
    // The writer of SQLite is alone: while it works, no other request can take its claim.
    if (this.#db.dialect === 'postgres') this.#prolonging = this.#prolong();
  }

  #prolong(): NodeJS.Timeout {
    const { log } = this.#exchange.host;
    return setInterval(() => {
      prolongClaim(this.#db, this.#claim).catch((error: unknown) =>
        log.warn({ err: error }, 'an idempotency claim could not be prolonged'),
      );
    }, LEASE_MS / 3).unref();
  }

  /** In the transaction of the change: both are saved, or neither is. */
  async complete(tx: Db, answer: Pick<KeptAnswer, 'status' | 'headers'> & { readonly body: Uint8Array | null }): Promise<void> {
    const isKept = this.#keepsResponse && answer.body !== null && answer.body.length <= BODY_BYTES_MAX && !('set-cookie' in answer.headers);
    const kept = { ...answer, headers: isKept ? answer.headers : {}, body: isKept ? answer.body : null, audience: this.#audience };
    await completeInTransaction(tx, this.#claim, kept, idempotencyErrors.idempotency_lost);
  }

  completed(): void {
    this.#end('completed');
  }

  /** After the rollback: a refusal that the operation decided is kept, anything else frees the key. */
  async failed(rendered: RenderedError, error: unknown): Promise<void> {
    const { status, headers, contentType, body } = rendered;
    const isLost = hasCode(error, 'idempotency_lost');
    const isKept = status < 500 && !NOT_KEPT.has(status) && !isLost;
    this.#end(isLost ? 'lost' : isKept ? 'refused' : 'released');
    if (isLost) return;
    try {
      if (isKept) {
        const kept = { 'content-type': contentType, ...headers };
        await completeClaim(this.#db, this.#claim, { status, headers: kept, body: Buffer.from(body), audience: this.#audience });
      } else await releaseClaim(this.#db, this.#claim);
    } catch (failure) {
      // The lease ends by itself; until then the caller is told that the request is being worked on.
      this.#exchange.log.warn({ err: failure }, 'an idempotency claim could not be ended');
    }
  }

  #end(outcome: IdempotencyOutcome): void {
    clearInterval(this.#prolonging);
    this.#exchange.idempotency = outcome;
  }
}

/** What became of a request: it may run and holds the claim, it was done before, or it has no key and runs as it is. */
export type ClaimResult = IdempotentRequest | Replay | undefined;

/**
 * Claims the key of a request, without a promise where nothing has to be waited for. Throws or rejects what else there is to say: the key was
 * used for another request, or is being worked on.
 */
export function claimRequest(
  exchange: Exchange,
  plan: IdempotencyPlan,
  view: () => string | Promise<string>,
): ClaimResult | Promise<ClaimResult> {
  const key = readKey(exchange.headers['idempotency-key']);
  if (key === undefined) {
    if (plan.isRequired) throw idempotencyErrors.idempotency_key_required();
    return undefined;
  }
  const anonymous = anonymousCaller(exchange, plan);
  const { tenant } = exchange;
  const seen = view();
  return tenant instanceof Promise || seen instanceof Promise
    ? Promise.all([tenant, seen]).then((settled) => claimAs(exchange, plan, key, anonymous, ...settled))
    : claimAs(exchange, plan, key, anonymous, tenant, seen);
}

function claimAs(
  exchange: Exchange,
  plan: IdempotencyPlan,
  key: string,
  anonymous: string | undefined,
  tenant: string | null,
  view: string,
): ClaimResult | Promise<ClaimResult> {
  const { principal, method, url } = exchange;
  const { operationId } = exchange.route as CompiledRoute;
  const request: IdentifiedRequest = { principal, anonymous, tenant, operationId, method, url, body: exchange.request.body };
  const claim: Claim = {
    scopeHash: scopeHash(request, key),
    key,
    caller: callerText(request),
    operation: operationId.slice(0, 200),
    fingerprint: fingerprintOf(request),
    token: randomUUID(),
  };
  const attempt: Attempt = { exchange, plan, claim, audience: audienceOf(principal, view) };
  const found = claimOrFind(exchange.host.db, claim);
  return found === 'claimed' ? claimedBy(attempt) : settleClaim(attempt, found);
}

interface Attempt {
  readonly exchange: Exchange;
  readonly plan: IdempotencyPlan;
  readonly claim: Claim;
  readonly audience: string;
}

function claimedBy({ exchange, plan, claim, audience }: Attempt): IdempotentRequest {
  return new IdempotentRequest(exchange, claim, audience, plan.keepsResponse);
}

/** A record that goes between the claim and the look at it was released: the next claim gets the key. */
async function settleClaim(attempt: Attempt, first: ReturnType<typeof claimOrFind>): Promise<ClaimResult> {
  const { exchange, claim, audience } = attempt;
  const { db } = exchange.host;
  for (let found = await first, left = ATTEMPTS_MAX - 1; ; left -= 1) {
    if (found === 'claimed') return claimedBy(attempt);
    if (found !== undefined) {
      if (!isAbandoned(db, found, claim)) return decide(exchange, found, claim, audience);
      if (await claimKey(db, claim)) return claimedBy(attempt);
    }
    if (left === 0) throw inProgress(1);
    found = await claimOrFind(db, claim);
  }
}

const ATTEMPTS_MAX = 3;

function decide(exchange: Exchange, record: FoundRecord, { fingerprint }: Claim, audience: string): Replay {
  const refuse = (outcome: IdempotencyOutcome, error: KitError): never => {
    exchange.idempotency = outcome;
    throw error;
  };
  if (record.fingerprint !== fingerprint) refuse('reused', idempotencyErrors.idempotency_key_reused());
  if (record.state === 'running') {
    const seconds = Math.ceil((record.lease_until.getTime() - exchange.clock.now().getTime()) / 1000);
    refuse('in_progress', inProgress(Math.min(Math.max(seconds, 1), RETRY_AFTER_MAX)));
  }
  const { status, headers, body } = record;
  if (status === null || body === null || record.audience !== audience) return refuse('not_kept', idempotencyErrors.response_not_kept());
  exchange.idempotency = 'replayed';
  return { status, headers: headers ?? {}, body };
}

/** Seconds: a request is seldom worked on for as long as its lease. */
const RETRY_AFTER_MAX = 5;

function inProgress(seconds: number): KitError {
  return idempotencyErrors.request_in_progress({ headers: { 'retry-after': String(seconds) } });
}

/** Undefined for a caller with credentials. Two strangers must not get one another's responses. */
function anonymousCaller(exchange: Exchange, plan: IdempotencyPlan): string | undefined {
  if (exchange.principal !== null) return undefined;
  const { headers, clientAddress } = exchange;
  const anonymous = plan.anonymous?.({ headers, clientAddress });
  if (anonymous === undefined || anonymous === '') throw coreErrors.not_authenticated();
  return anonymous;
}
