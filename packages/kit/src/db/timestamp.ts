import { dbErrors } from './errors.ts';

const FIRST = new Date('0001-01-01T00:00:00.000Z').getTime();
const LAST = new Date('9999-12-31T23:59:59.999Z').getTime();

let last: { readonly time: number; readonly text: string } = { time: Number.NaN, text: '' };

/** ISO 8601 with milliseconds and Z. Years 1–9999: within them text order is time order, and both databases agree. */
export function timestampText(date: Date): string {
  const time = date.getTime();
  // The timestamps of a row, and of the rows written in the same millisecond, are the same moment.
  if (time === last.time) return last.text;
  if (time >= FIRST && time <= LAST) {
    last = { time, text: date.toISOString() };
    return last.text;
  }
  throw dbErrors.value_not_storable({
    detail: Number.isNaN(time) ? 'A timestamp must be a valid date.' : 'A timestamp must lie in the years 1 to 9999.',
  });
}

const CANONICAL = /^(?!0000)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z$/;

/** Whether the value is a text that {@link timestampText} writes. Days that a month does not have count as such. */
export function isTimestampText(value: unknown): value is string {
  return typeof value === 'string' && value.length === 24 && CANONICAL.test(value);
}
