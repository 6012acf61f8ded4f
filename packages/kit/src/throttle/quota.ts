/** A quota: how many requests there may be in each calendar period, in UTC. `count` is null where they are only counted. */
export interface Quota {
  readonly count: number | null;
  readonly period: QuotaPeriod;
}

/** A calendar period that a quota is renewed with. */
export type QuotaPeriod = (typeof QUOTA_PERIODS)[number];

/** One period: `from` belongs to it, `until` to the next. */
export interface CalendarPeriod {
  readonly from: Date;
  readonly until: Date;
}

export const QUOTA_PERIODS = ['hour', 'day', 'month', 'year'] as const;
const SHAPE = /^(unlimited|[1-9][0-9]{0,14})\/(hour|day|month|year)$/;
const EXPECTED = 'a quota is "<count>/<period>" with hour, day, month or year, such as "10000/month"; "unlimited/month" only counts';

/** What is wrong with the text of a quota, as one sentence; null when it is fine. */
export function quotaFault(text: unknown): string | null {
  if (typeof text === 'string' && SHAPE.test(text)) return null;
  const shown = typeof text === 'string' ? JSON.stringify(text.slice(0, 40)) : text === null ? 'null' : typeof text;
  return `${shown} is no quota: ${EXPECTED}.`;
}

/** Reads `<count>/<period>`: `10000/month`. Throws a TypeError whose message is the fault's sentence. */
export function parseQuota(text: string): Quota {
  const [, count, period] = (typeof text === 'string' ? SHAPE.exec(text) : null) ?? [];
  if (count === undefined || period === undefined) throw new TypeError(quotaFault(text) ?? EXPECTED);
  return { count: count === 'unlimited' ? null : Number(count), period: period as QuotaPeriod };
}

/** The period that a moment is in. */
export function calendarPeriod(period: QuotaPeriod, at: Date): CalendarPeriod {
  const [year, month, day, hour] = [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate(), at.getUTCHours()];
  const utc = (...parts: [number, number, number?, number?]): Date => new Date(Date.UTC(...parts));
  switch (period) {
    case 'hour':
      return { from: utc(year, month, day, hour), until: utc(year, month, day, hour + 1) };
    case 'day':
      return { from: utc(year, month, day), until: utc(year, month, day + 1) };
    case 'month':
      return { from: utc(year, month), until: utc(year, month + 1) };
    default:
      return { from: utc(year, 0), until: utc(year + 1, 0) };
  }
}
