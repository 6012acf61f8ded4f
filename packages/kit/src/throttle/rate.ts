import { requireArguments } from '../options/read-options.ts';
import { rule, isMembers, either, text, anObject } from '../options/value-rule.ts';
/** A budget: `count` requests per `periodMs`. */
export interface Rate {
  /** Requests per period. */
  readonly count: number;
  /** The period in milliseconds. */
  readonly periodMs: number;
}

type Period = 's' | 'sec' | 'second' | 'm' | 'min' | 'minute' | 'h' | 'hour' | 'd' | 'day';

/** A rate as text: `1000/hour`, `20/5min`. */
export type RateText = `${number}/${Period}` | `${number}/${number}${Period}`;

/** A text that is known when you compile must be a rate; one that is only known at run time is checked at startup. */
export type CheckedRate<T extends string> = string extends T ? T & {} : T extends RateText ? T : RateText;

/** What editors suggest. */
export type UsualRate = '10/s' | '100/min' | '1000/hour' | '10000/day';

const SECOND_MS = 1000;
const DAY_MS = 86_400 * SECOND_MS;

const PERIODS_MS: Readonly<Record<string, number>> = {
  s: SECOND_MS,
  sec: SECOND_MS,
  second: SECOND_MS,
  m: 60 * SECOND_MS,
  min: 60 * SECOND_MS,
  minute: 60 * SECOND_MS,
  h: 3600 * SECOND_MS,
  hour: 3600 * SECOND_MS,
  d: DAY_MS,
  day: DAY_MS,
};

const PERIOD_NAMES = Object.keys(PERIODS_MS).join(', ');
/** Storages keep a budget's state this long; a longer period is a quota, which belongs in a table of its own. */
const PERIOD_DAYS_MAX = 366;
/** Below one microsecond per request the storages' time unit cannot tell two requests apart. */
const COUNT_PER_SECOND_MAX = 1_000_000;
/** Longer texts are faults; the bound keeps a hostile value out of the fault's own sentence. */
const TEXT_LENGTH_MAX = 40;

const SHAPE = /^([^/]*)\/([0-9]*)([^0-9/]*)$/;

/** The rate a text means, or the sentence that says what is wrong with it. */
function readRate(text: unknown): Rate | string {
  if (typeof text !== 'string') return `A rate is a string such as "1000/hour" or "20/5min", not ${text === null ? 'null' : typeof text}.`;
  if (text.length > TEXT_LENGTH_MAX)
    return `A rate is a short string such as "1000/hour" or "20/5min", not one of ${text.length} characters.`;
  const quoted = JSON.stringify(text);
  const parts = SHAPE.exec(text);
  if (parts === null) return `The rate ${quoted} is not of the form <count>/<period>, such as "1000/hour" or "20/5min".`;
  const [, count = '', multiple = '', period = ''] = parts;
  if (!/^[0-9]+$/.test(count)) return `The rate ${quoted} must start with an integer number of requests, as in "1000/hour".`;
  if (Number(count) === 0) return `The rate ${quoted} admits no request at all; use a count of 1 or more.`;
  const periodMs = Object.hasOwn(PERIODS_MS, period) ? PERIODS_MS[period] : undefined;
  if (periodMs === undefined)
    return `The rate ${quoted} has the period ${JSON.stringify(period)}; use one of ${PERIOD_NAMES}.${suggestion(period)}`;
  if (multiple !== '' && Number(multiple) === 0) return `The rate ${quoted} has a period of length zero; use 1 or more.`;
  const rate: Rate = { count: Number(count), periodMs: (multiple === '' ? 1 : Number(multiple)) * periodMs };
  if (rate.periodMs > PERIOD_DAYS_MAX * DAY_MS) return `The rate ${quoted} has a period longer than ${PERIOD_DAYS_MAX} days.`;
  if (rate.count / (rate.periodMs / SECOND_MS) > COUNT_PER_SECOND_MAX)
    return `The rate ${quoted} is more than ${COUNT_PER_SECOND_MAX} a second.`;
  return rate;
}

function suggestion(period: string): string {
  const near = period.trim().toLowerCase().replace(/s$/, '');
  return near !== period && Object.hasOwn(PERIODS_MS, near) ? ` Did you mean "${near}"?` : '';
}

/** What is wrong with a rate text, as one sentence; null when it is fine. */
export function rateFault(text: unknown): string | null {
  const rate = readRate(text);
  return typeof rate === 'string' ? rate : null;
}

/** Reads `<count>/<[n]period>`: `1000/hour`, `20/5min`. Throws a TypeError whose message is the fault's sentence. */
export function parseRate(text: string): Rate {
  const rate = readRate(text);
  if (typeof rate === 'string') throw new TypeError(rate);
  return rate;
}

/** The shortest text that parses to this rate, in the largest unit that divides the period. */
export function formatRate(rate: Rate): string {
  requireArguments(
    'formatRate()',
    { rate },
    { rate: rule('a rate: { count, periodMs }', (value) => isMembers(value) && typeof value['periodMs'] === 'number') },
  );
  for (const [name, periodMs] of [
    ['day', PERIODS_MS['day']],
    ['hour', PERIODS_MS['hour']],
    ['min', PERIODS_MS['min']],
    ['s', PERIODS_MS['s']],
  ] as const) {
    if (periodMs === undefined || rate.periodMs % periodMs !== 0) continue;
    const multiple = rate.periodMs / periodMs;
    return `${rate.count}/${multiple === 1 ? '' : multiple}${name}`;
  }
  throw new TypeError(`A rate's period must be whole seconds, not ${rate.periodMs} ms.`);
}

/** Accepts a rate or its text, as every throttle factory does. */
export function toRate(rate: Rate | string): Rate {
  requireArguments('toRate()', { rate }, { rate: either('a rate, such as "100/min"', text, anObject) });
  return typeof rate === 'string' ? parseRate(rate) : parseRate(formatRate(rate));
}
