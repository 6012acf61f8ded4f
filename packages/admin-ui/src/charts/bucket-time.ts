import { locale } from '../values/format.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

const clock = new Intl.DateTimeFormat(locale, { hour: '2-digit', minute: '2-digit' });
const day = new Intl.DateTimeFormat(locale, { day: 'numeric', month: 'short' });
const dayAndClock = new Intl.DateTimeFormat(locale, {
  weekday: 'short',
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
});

/** How bucket starts read below the axis: by the clock within two days, by date beyond. */
export function axisLabel(iso: string, buckets: readonly string[]): string {
  const span = Date.parse(buckets.at(-1) ?? iso) - Date.parse(buckets[0] ?? iso);
  return (span < 2 * DAY_MS ? clock : day).format(new Date(iso));
}

export function bucketLabel(iso: string, buckets: readonly string[]): string {
  const width = Date.parse(buckets[1] ?? iso) - Date.parse(buckets[0] ?? iso);
  return (width >= DAY_MS ? day : dayAndClock).format(new Date(iso));
}
