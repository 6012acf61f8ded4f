// Reading the options of a command. What is wrong is a 422 whose sentences the command line prints; `checkAll` reports several at once.
import { isUuid } from '../../db/values/uuid.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { KitError } from '../../errors/kit-error.ts';

export function optionFault(option: string, message: string): KitError {
  return coreErrors.validation_error({ errors: [{ location: [option], code: 'invalid', message }] });
}

export function wholeNumberOption(option: string, text: string, min: number, max = 999_999_999): number {
  if (!/^\d{1,9}$/.test(text) || Number(text) < min || Number(text) > max)
    throw optionFault(option, `${option} is ${JSON.stringify(text)}; use an integer from ${min} to ${max}.`);
  return Number(text);
}

/** `shownBy`: what shows such ids. */
export function idOption(option: string, text: string, shownBy: string): string {
  if (!isUuid(text)) throw optionFault(option, `${option} is ${JSON.stringify(text)}; use an id such as ${shownBy} shows.`);
  return text.toLowerCase();
}

export function timeOption(option: string, text: string): Date {
  const date = new Date(text);
  const day = /^(\d{4}-\d{2}-\d{2})(T.+(Z|[+-]\d{2}:\d{2}))?$/.exec(text)?.[1] ?? '';
  // `Date` takes the 31st of February for the 3rd of March.
  const isDay = day >= '0001' && new Date(`${day}T00:00:00Z`).getUTCDate() === Number(day.slice(-2));
  if (!isDay || Number.isNaN(date.getTime()))
    throw optionFault(
      option,
      `${option} is ${JSON.stringify(text)}; use a date (2026-03-01) or an ISO 8601 time with its offset (2026-03-01T12:00:00Z).`,
    );
  return date;
}
