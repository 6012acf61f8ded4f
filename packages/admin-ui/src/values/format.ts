import type { AdminResourceShape, AdminWords } from '../api/shapes.ts';

/** As the application says; else as the browser does. */
const page = (globalThis as { readonly document?: { readonly documentElement: { readonly dataset: Readonly<Record<string, string>> } } })
  .document;
export const locale = page?.documentElement.dataset['locale'];
const number = new Intl.NumberFormat(locale);
const exactTime = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'medium' });
const exactDate = new Intl.DateTimeFormat(locale, { dateStyle: 'medium' });
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
const percent = new Intl.NumberFormat(locale, { maximumFractionDigits: 1 });

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export function formatNumber(value: number | bigint): string {
  return number.format(value);
}

export function formatPercent(value: number): string {
  return `${percent.format(value)} %`;
}

export function formatTime(iso: string): string {
  const time = new Date(iso);
  return Number.isNaN(time.getTime()) ? iso : exactTime.format(time);
}

export function formatDate(iso: string): string {
  const time = new Date(/^\d{4}-\d{2}-\d{2}$/.test(iso) ? `${iso}T00:00:00` : iso);
  return Number.isNaN(time.getTime()) ? iso : exactDate.format(time);
}

/** `3 minutes ago`, `in 2 hours`; past a month the date says more. */
export function formatRelative(iso: string, now: number): string {
  const time = Date.parse(iso);
  if (Number.isNaN(time)) return iso;
  const ms = time - now;
  const size = Math.abs(ms);
  if (size < 10 * SECOND) return 'just now';
  if (size < MINUTE) return relative.format(Math.round(ms / SECOND), 'second');
  if (size < HOUR) return relative.format(Math.round(ms / MINUTE), 'minute');
  if (size < DAY) return relative.format(Math.round(ms / HOUR), 'hour');
  if (size < 30 * DAY) return relative.format(Math.round(ms / DAY), 'day');
  return formatDate(iso);
}

/** Two units at most: `840 ms`, `2.4 s`, `3 min 5 s`, `2 h 10 min`, `4 d 3 h`. */
export function formatDuration(ms: number): string {
  if (ms < SECOND) return `${number.format(Math.round(ms))} ms`;
  if (ms < MINUTE) return `${percent.format(ms / SECOND)} s`;
  if (ms < HOUR) return two(ms, MINUTE, 'min', SECOND, 's');
  if (ms < DAY) return two(ms, HOUR, 'h', MINUTE, 'min');
  return two(ms, DAY, 'd', HOUR, 'h');
}

function two(ms: number, big: number, bigName: string, small: number, smallName: string): string {
  const whole = Math.floor(ms / big);
  const rest = Math.floor((ms - whole * big) / small);
  return `${number.format(whole)} ${bigName}${rest === 0 ? '' : ` ${rest} ${smallName}`}`;
}

/** Only addresses of the web become links: a `javascript:` address stays text. */
export function webAddress(text: string): string | null {
  if (!/^https?:\/\//i.test(text)) return null;
  try {
    const url = new URL(text);
    return url.protocol === 'http:' || url.protocol === 'https:' ? url.href : null;
  } catch {
    return null;
  }
}

/** `1 key`, `12 keys`. */
export function plural(count: number, one: string, many: string): string {
  return `${number.format(count)} ${count === 1 ? one : many}`;
}

/** `Revoke 3 keys`. A number replaces the word that a label has for its records: `Pay the order` is `Pay 3 orders`, `Retry selected` `Retry 3 jobs`. */
export function numberedLabel(label: string, count: number, [one, many]: readonly [string, string]): string {
  const what = plural(count, one, many);
  const words = [many, one].map((word) => word.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  const named = new RegExp(String.raw`\b(?:(?:the|an?|selected) )?(?:${words.join('|')})\b|\bselected\b`, 'i');
  return named.test(label) ? label.replace(named, () => what) : `${label} ${what}`;
}

/** The text for one record or for several. */
export function wordsFor(text: string | AdminWords, count: number): string {
  return typeof text === 'string' ? text : count === 1 ? text.one : text.many;
}

/** What several records of a list are called, inside a sentence. */
export function pluralOf({ plural: several, label }: Pick<AdminResourceShape, 'plural' | 'label'>): string {
  return lowerFirst(several ?? label);
}

/** Inside a sentence: `Endpoint` becomes `endpoint`, `API key` stays. */
export function lowerFirst(text: string): string {
  return /^[A-Z][^A-Z]/.test(text) ? text.charAt(0).toLowerCase() + text.slice(1) : text;
}

/** Moments inside a sentence, as people here write them. */
export function withLocalTimes(text: string): string {
  return text.replaceAll(/\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z/g, formatTime);
}
