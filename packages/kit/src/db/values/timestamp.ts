import { dbErrors } from '../errors.ts';

const FIRST = new Date('0001-01-01T00:00:00.000Z').getTime();
const LAST = new Date('9999-12-31T23:59:59.999Z').getTime();

let last: { readonly time: number; readonly text: string } = { time: Number.NaN, text: '' };

/** ISO 8601 with milliseconds and Z. Years 1–9999: within them text order is time order, and both databases agree. */
export function timestampText(date: Date): string {
  const time = date.getTime();
  // The timestamps of a row, and of the rows written in the same millisecond, are the same moment.
  if (time === last.time) return last.text;
  if (isTimestamp(date)) {
    last = { time, text: textOf(date, time) };
    return last.text;
  }
  throw dbErrors.value_not_storable({
    detail: Number.isNaN(time) ? 'A timestamp must be a valid date.' : 'A timestamp must be in the years 1 to 9999.',
  });
}

/** Whether a column can hold the moment. An offset leads out of the years that its text has: `0001-01-01T00:00:00+01:00`. */
export function isTimestamp(date: Date): boolean {
  const time = date.getTime();
  return time >= FIRST && time <= LAST;
}

/** What JSON has of a date: the same as its `toJSON`, in a quarter of the time for one of a second that is known. */
export function dateJson(date: Date): string | null {
  const time = date.getTime();
  return time >= FIRST && time <= LAST && date.toJSON === Date.prototype.toJSON ? textOf(date, time) : date.toJSON();
}

/** `2026-01-31T12:00:00.` of the seconds used last, each in the place of its number: a request writes its own time, and one a minute or a day later. */
const seconds: { readonly start: number; readonly text: string }[] = Array.from({ length: 7 }, () => ({ start: Number.NaN, text: '' }));

function textOf(date: Date, time: number): string {
  const ms = date.getUTCMilliseconds();
  const start = time - ms;
  const place = Math.abs(start / 1000) % seconds.length;
  const known = seconds[place];
  if (known?.start === start) return `${known.text}${ms < 10 ? '00' : ms < 100 ? '0' : ''}${ms}Z`;
  const text = date.toISOString();
  seconds[place] = { start, text: text.slice(0, 20) };
  return text;
}

const CANONICAL = /^(?!0000)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z$/;

/** Whether the value is a text that {@link timestampText} writes. Days that a month does not have count as such. */
export function isTimestampText(value: unknown): value is string {
  return typeof value === 'string' && value.length === 24 && CANONICAL.test(value);
}
