import { ruleResult } from '../../auth/rights/rule-result.ts';
import { randomUUID } from 'node:crypto';
import type { Database, Db } from '../../db/engine/db.ts';
import { isKitError, type KitError } from '../../errors/kit-error.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { RenderedError } from '../../errors/render.ts';
import type { CompiledRoute } from '../exchange/compiled-route.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { idempotencyErrors } from '../errors.ts';
import type { IdempotencyPlan } from '../declare/idempotent-options.ts';
import type { IdempotencyOutcome } from '../declare/idempotency-outcome.ts';
import { mayHaveRecord } from './record-limit.ts';
import { releaseWhenReachable } from './release-when-reachable.ts';
import {
  type Claim,
  claimKey,
  claimOrFind,
  completeClaim,
  completeInTransaction,
  findRecord,
  type FoundRecord,
  isAbandoned,
  isExpired,
  type KeptAnswer,
  type KeyedRequest,
  LEASE_MS,
  prolongClaim,
  releaseClaim,
} from './record-store.ts';
import { declaredValues } from '../input/declared-values.ts';
import {
  audienceOf,
  callerText,
  fingerprintOf,
  type IdentifiedRequest,
  readKey,
  scopeHash,
  UNCOUNTED_HEADERS,
} from './request-identity.ts';

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
  readonly #attempt: KeyedAttempt;
  readonly #exchange: Exchange;
  readonly #db: Database;
  readonly #claim: Claim;
  #prolonging: NodeJS.Timeout | undefined;

  constructor(attempt: KeyedAttempt, claim: Claim) {
    this.#attempt = attempt;
    this.#exchange = attempt.exchange;
    this.#db = attempt.exchange.host.db;
    this.#claim = claim;
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
  async complete(tx: Db, answer: GivenAnswer): Promise<void> {
    await completeInTransaction(tx, this.#claim, keptOf(this.#attempt, answer), idempotencyErrors.idempotency_lost);
  }

  completed(): void {
    this.#end('completed');
  }

  /** After the rollback: a refusal that the operation decided is kept, anything else frees the key. */
  async failed(rendered: RenderedError, error: unknown): Promise<void> {
    const outcome = failedOutcome(rendered, error);
    this.#end(outcome);
    if (outcome === 'lost') return;
    try {
      if (outcome === 'refused') await completeClaim(this.#db, this.#claim, refusalOf(this.#attempt, rendered));
      else await releaseClaim(this.#db, this.#claim);
    } catch (failure) {
      // Until then, or until the lease expires, the caller gets `request_in_progress`.
      releaseWhenReachable(this.#db, this.#claim);
      this.#exchange.log.warn({ err: failure }, 'an idempotency claim could not be ended');
    }
  }

  #end(outcome: IdempotencyOutcome): void {
    clearInterval(this.#prolonging);
    this.#exchange.idempotency = outcome;
  }
}

type GivenAnswer = Pick<KeptAnswer, 'status' | 'headers' | 'body'>;

/** An answer without what must not be sent again. */
function keptOf({ plan, audience, exchange }: KeyedAttempt, { status, headers, body }: GivenAnswer): KeptAnswer {
  const isKept =
    plan.keepsResponse && !exchange.isShownOnce && body !== null && body.length <= BODY_BYTES_MAX && !('set-cookie' in headers);
  return { status, headers: isKept ? headers : {}, body: isKept ? body : null, audience };
}

function refusalOf({ audience }: KeyedAttempt, { status, headers, contentType, body }: RenderedError): KeptAnswer {
  return { status, headers: { 'content-type': contentType, ...headers }, body: Buffer.from(body), audience };
}

function failedOutcome({ status }: RenderedError, error: unknown): 'lost' | 'refused' | 'released' {
  if (isKitError(error, 'idempotency_lost')) return 'lost';
  // The request may succeed when it is sent again.
  if (isKitError(error, 'write_conflict')) return 'released';
  return status < 500 && !NOT_KEPT.has(status) ? 'refused' : 'released';
}

/** What became of a request: it may run and holds the claim, it was done before, or it has no key and runs as it is. */
export type ClaimResult = IdempotentRequest | Replay | undefined;

/** Claims the key of a request. Rejects with what else there is to say: the key was used for another request, or its request is still in progress. */
export async function claimRequest(exchange: Exchange, plan: IdempotencyPlan, view: () => Promise<string>): Promise<ClaimResult> {
  const key = readKey(exchange.headers['idempotency-key']);
  if (key === undefined) {
    if (plan.isRequired) throw idempotencyErrors.idempotency_key_required();
    return undefined;
  }
  const attempt = attemptAs(exchange, plan, key, anonymousCaller(exchange, plan), await exchange.tenant, await view());
  return settleClaim(attempt, { ...attempt.request, token: randomUUID() });
}

/** One request with an idempotency key, before anything is known of the key. */
interface KeyedAttempt {
  readonly exchange: Exchange;
  readonly plan: IdempotencyPlan;
  readonly request: KeyedRequest;
  readonly audience: string;
}

function attemptAs(
  exchange: Exchange,
  plan: IdempotencyPlan,
  key: string,
  anonymous: string | undefined,
  tenant: string | null,
  view: string,
): KeyedAttempt {
  const { principal, method, url, knownMembership } = exchange;
  const { operationId } = exchange.route as CompiledRoute;
  const declared = declaredValues(exchange, UNCOUNTED_HEADERS);
  const identified: IdentifiedRequest = { principal, anonymous, tenant, operationId, method, url, body: exchange.request.body, declared };
  const request: KeyedRequest = {
    scopeHash: scopeHash(identified, key),
    key,
    caller: callerText(identified),
    operation: operationId.slice(0, 200),
    fingerprint: fingerprintOf(identified),
  };
  return { exchange, plan, request, audience: audienceOf(principal, knownMembership, view) };
}

/** A record that goes between the claim and the look at it was released: the next claim gets the key. */
async function settleClaim(attempt: KeyedAttempt, claim: Claim): Promise<ClaimResult> {
  const { exchange, audience } = attempt;
  const { db, inputLimits } = exchange.host;
  if (!(await mayHaveRecord(db, claim.caller, inputLimits.idempotencyRecords))) return repeatOnly(attempt, claim);
  for (let found = await claimOrLeave(claimOrFind, db, claim), left = ATTEMPTS_MAX - 1; ; left -= 1) {
    if (found === 'claimed') return new IdempotentRequest(attempt, claim);
    if (found !== undefined) {
      if (!isAbandoned(db, found, claim)) return decide(exchange, found, claim, audience);
      if (await claimOrLeave(claimKey, db, claim)) return new IdempotentRequest(attempt, claim);
    }
    if (left === 0) throw inProgress(1);
    found = await claimOrLeave(claimOrFind, db, claim);
  }
}

/** A claim whose answer was lost may have been saved, for a request that does not run. */
async function claimOrLeave<T>(claims: (db: Database, claim: Claim) => Promise<T>, db: Database, claim: Claim): Promise<T> {
  try {
    return await claims(db, claim);
  } catch (error) {
    if (isKitError(error, 'database_unavailable')) releaseWhenReachable(db, claim);
    throw error;
  }
}

const ATTEMPTS_MAX = 3;

/** The caller has too many records: a key that has one still gets its response, or its next attempt. */
async function repeatOnly(attempt: KeyedAttempt, claim: Claim): Promise<ClaimResult> {
  const { exchange, audience } = attempt;
  const { db, inputLimits } = exchange.host;
  const found = await findRecord(db, claim);
  if (found === undefined || isExpired(found))
    throw idempotencyErrors.too_many_idempotency_keys({ extensions: { keys_max: inputLimits.idempotencyRecords } });
  if (!isAbandoned(db, found, claim)) return decide(exchange, found, claim, audience);
  if (await claimOrLeave(claimKey, db, claim)) return new IdempotentRequest(attempt, claim);
  throw inProgress(1);
}

function decide(exchange: Exchange, record: FoundRecord, { fingerprint }: KeyedRequest, audience: string): Replay {
  const refuse = (outcome: IdempotencyOutcome, error: KitError): never => {
    exchange.idempotency = outcome;
    throw error;
  };
  if (record.fingerprint !== fingerprint) refuse('reused', idempotencyErrors.idempotency_key_reused());
  if (record.lease_until !== null) {
    const seconds = Math.ceil((new Date(record.lease_until).getTime() - exchange.clock.now().getTime()) / 1000);
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
  if (plan.anonymous === undefined) throw coreErrors.not_authenticated();
  const owner = exchange.route?.operationId ?? exchange.url;
  const anonymous = ruleResult('idempotency caller', owner, plan.anonymous({ headers, clientAddress }));
  if (anonymous === '') throw coreErrors.not_authenticated();
  return anonymous;
}
