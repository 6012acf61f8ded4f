import type { Db } from '../../db/engine/db.ts';
import { objectOf, type OptionRules, readOptions } from '../../options/read-options.ts';
import { aFunction, either, filledText, milliseconds, required, rule, sentenceRule, wholeNumber } from '../../options/value-rule.ts';
import { quotaFault } from '../../throttle/quota.ts';
import { isRedisClient, REDIS_CLIENT, type RedisClient } from '../../throttle/redis-client.ts';

/** A quota for everybody, such as `10000/month`, or what somebody's plan says: null for none. A function is called with every request of a program. */
export type QuotaOf = string | ((id: string, db: Db) => string | null | Promise<string | null>);

export interface QuotaOptions {
  /** Of each API key that has no `quota` of its own. */
  readonly key?: string;
  /** Of each user, over all of their keys. */
  readonly owner?: QuotaOf;
  /** Of each tenant, over all of its members' keys. */
  readonly tenant?: QuotaOf;
  /** Counts in Redis (6.0 or later) instead of the database, which gets the counts each second and continues while Redis does not answer. */
  readonly redis?: RedisQuotas;
}

export interface RedisQuotas {
  /** A client of ioredis or of the `redis` package. The application owns the connection. */
  readonly client: RedisClient;
  /** Written before every key, so that several apps can share one server. Default: `kit:quotas:`. */
  readonly prefix?: string;
  /** A response later than this counts as a failure. Default: 500. */
  readonly timeoutMs?: number;
}

export interface RequestsOptions {
  /**
   * The share of successful requests that get a row, from 0 to 1. Default: 1. Failures always get one, and every request is counted in the usage.
   */
  readonly sampleRatio?: number;
  /** Days after which rows are removed, in the background. Default: 30. */
  readonly retentionDays?: number;
  /** Days after which the counts by day are removed. Default: 400. */
  readonly usageRetentionDays?: number;
  /** Rows that wait to be written, per process; further ones are dropped and counted. Default: 10,000. */
  readonly queueMax?: number;
  /** How many requests programs may make in a calendar period: `10000/month`; `unlimited/month` only counts. API keys may have their own. */
  readonly quotas?: QuotaOptions;
}

export interface RequestsSettings extends Required<Omit<RequestsOptions, 'quotas'>> {
  readonly quotas: {
    readonly key: string | null;
    readonly owner: QuotaOf | null;
    readonly tenant: QuotaOf | null;
    readonly redis: RedisQuotas | null;
  };
}

const quota = sentenceRule(quotaFault);
const quotaOf = either('a quota, such as "10000/month", or a function that returns one', aFunction, quota);

const rules: OptionRules<RequestsOptions> = {
  sampleRatio: rule('a number from 0 to 1', (value) => typeof value === 'number' && value >= 0 && value <= 1),
  retentionDays: wholeNumber(1),
  usageRetentionDays: wholeNumber(1),
  queueMax: wholeNumber(1, 1_000_000),
  quotas: objectOf<QuotaOptions>({
    key: quota,
    owner: quotaOf,
    tenant: quotaOf,
    redis: objectOf<RedisQuotas>({ client: required(rule(REDIS_CLIENT, isRedisClient)), prefix: filledText, timeoutMs: milliseconds(1) }),
  }),
};

export function readRequestsOptions(options: RequestsOptions): RequestsSettings {
  const {
    sampleRatio = 1,
    retentionDays = 30,
    usageRetentionDays = 400,
    queueMax = 10_000,
    quotas = {},
  } = readOptions('requests()', options, rules);
  const { key = null, owner = null, tenant = null, redis = null } = quotas;
  return Object.freeze({ sampleRatio, retentionDays, usageRetentionDays, queueMax, quotas: Object.freeze({ key, owner, tenant, redis }) });
}
