import type { PeriodUsage } from '../../../app/declare/registry.ts';
import type { Db } from '../../../db/engine/db.ts';
import { isStorableText } from '../../../db/values/storable-text.ts';
import { IDENTITY_LENGTH_MAX } from '../../../db/values/identity-length.ts';
import type { KitError } from '../../../errors/kit-error.ts';
import type { Exchange } from '../../../http/exchange/exchange.ts';
import type { ThrottleResult } from '../../../throttle/enforce.ts';
import { calendarPeriod, parseQuota } from '../../../throttle/quota.ts';
import { requestErrors } from '../errors.ts';
import { requestLogs } from '../log/log.ts';
import type { QuotaOf, RequestsSettings } from '../options.ts';
import { quotaCounters } from './quota-counter.ts';
import { countsAt, quotaCount, type CountedPeriod, type QuotaCount, type QuotaRow, type QuotaSubject } from './quota-store.ts';

const API_KEY_SCHEME = 'api_key';

type Counted = readonly [subject: QuotaSubject, quota: string];

/**
 * Counts an admitted request against the quotas of its key, its owner and its tenant; throws where one is used up, and then counts it in none. Only
 * programs have quotas: people in a browser see what is used up, whatever it is.
 */
export function countRequest(exchange: Exchange, db: Db, quotas: RequestsSettings['quotas']): undefined | Promise<void> {
  const { principal } = exchange;
  if (principal === null || principal.scopes === null) return undefined;
  if ((principal.quota ?? quotas.key ?? quotas.owner ?? quotas.tenant ?? null) === null) return undefined;
  return countAll(exchange, db, quotas);
}

async function countAll(exchange: Exchange, db: Db, quotas: RequestsSettings['quotas']): Promise<void> {
  const counted = await subjectsOf(exchange, db, quotas);
  if (counted.length === 0) return;
  const now = exchange.clock.now();
  const counts = counted.map(([subject, quota]) => {
    const parsed = parseQuota(quota);
    return quotaCount(subject, { ...calendarPeriod(parsed.period, now), quota: parsed });
  });
  const taken = await quotaCounters.of(db).take(counts);
  const resultAt = (place: number, used: number | null): ThrottleResult => {
    const { subject, period } = counts[place] as QuotaCount;
    return resultOf(subject, counted[place]?.[1] ?? '', period, used, now);
  };
  if ('used' in taken) {
    const results = taken.used.map((used, place) => resultAt(place, used));
    exchange.throttled = [...exchange.throttled, ...results.filter(({ rate }) => rate.count > 0)];
    return;
  }
  const refused = resultAt(taken.usedUp, null);
  exchange.throttledIn = 'principal';
  exchange.throttled = [...exchange.throttled, refused];
  throw exceeded(refused, counted[taken.usedUp]?.[1] ?? '', (counts[taken.usedUp] as QuotaCount).period, now);
}

/** Key, owner and tenant, as far as each of them has a quota. */
async function subjectsOf(exchange: Exchange, db: Db, quotas: RequestsSettings['quotas']): Promise<readonly Counted[]> {
  const { principal } = exchange;
  const owner = idOf(principal?.user.id);
  if (principal === null || owner === null) return [];
  const counted: Counted[] = [];
  const keyId = principal.scheme === API_KEY_SCHEME ? idOf(principal.credentialId) : null;
  const keyQuota = principal.quota ?? quotas.key;
  const bound = idOf(principal.boundTenant) ?? '';
  if (keyId !== null && keyQuota !== null) counted.push([{ kind: 'key', owner, tenant: bound, keyId }, keyQuota]);
  const ownerQuota = await quotaOf(quotas.owner, owner, db);
  if (ownerQuota !== null) counted.push([{ kind: 'owner', owner, tenant: '', keyId: '' }, ownerQuota]);
  if (quotas.tenant === null) return counted;
  // A tenant that is not the caller's fails where it is asked for; here nothing is counted for it.
  const tenant = idOf(await Promise.resolve(exchange.tenant).catch(() => null));
  const tenantQuota = tenant === null ? null : await quotaOf(quotas.tenant, tenant, db);
  if (tenant !== null && tenantQuota !== null) counted.push([{ kind: 'tenant', owner: '', tenant, keyId: '' }, tenantQuota]);
  return counted;
}

async function quotaOf(quota: QuotaOf | null, id: string, db: Db): Promise<string | null> {
  return typeof quota === 'function' ? ((await quota(id, db)) ?? null) : quota;
}

/** An id that is cut would be another one's. */
function idOf(id: string | null | undefined): string | null {
  return id === undefined || id === null || id === '' || id.length > IDENTITY_LENGTH_MAX || !isStorableText(id) ? null : id;
}

/** In the words of throttles, so that the RateLimit headers and the metrics state quotas too. Only counted: a rate of 0, which is not stated. */
function resultOf(
  { kind }: QuotaSubject,
  text: string,
  { from, until, quota }: CountedPeriod,
  used: number | null,
  now: Date,
): ThrottleResult {
  const limit = quota.count ?? 0;
  const untilMs = until.getTime() - now.getTime();
  const remaining = used === null ? 0 : Math.max(0, limit - used);
  return {
    policy: `quota_${kind}`,
    budget: `quota_${kind}:${text}`,
    rate: { count: limit, periodMs: until.getTime() - from.getTime() },
    decision: { allowed: used !== null, limit, remaining, resetMs: untilMs, nextMs: untilMs, retryAfterMs: used === null ? untilMs : 0 },
  };
}

function exceeded({ policy }: ThrottleResult, quota: string, { until }: CountedPeriod, now: Date): KitError {
  const seconds = Math.max(1, Math.ceil((until.getTime() - now.getTime()) / 1000));
  return requestErrors.request_quota_exceeded({
    detail: `The quota of ${quota} requests is used up. It renews at ${until.toISOString()}.`,
    extensions: { policy, quota, renews_at: until.toISOString() },
    headers: { 'retry-after': String(seconds) },
  });
}

/** What a count says to programs. */
function periodUsage({ period, starts_at, ends_at, used, quota }: QuotaRow): PeriodUsage {
  return {
    period,
    from: new Date(starts_at),
    until: new Date(ends_at),
    used: Number(used),
    quota: quota === null ? null : Number(quota),
  };
}

/** What a key, a user or a tenant used in the periods that a time is in. Default: now. */
export async function usageOf(db: Db, kind: QuotaSubject['kind'], id: string, at?: Date): Promise<readonly PeriodUsage[]> {
  const rows = await countsAt(db, kind, id, at ?? requestLogs.of(db).clock.now());
  return (await quotaCounters.of(db).current(rows)).map(periodUsage);
}
