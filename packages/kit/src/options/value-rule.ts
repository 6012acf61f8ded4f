import { didYouMean } from './did-you-mean.ts';
import type { Fault } from './fault.ts';

/** Checks one value. `place` is where it was given (`accounts()`), `name` the option or `list[2]`. No faults: the value is valid. */
export type ValueRule = ((value: unknown, place: string, name: string) => readonly Fault[]) & {
  /** Set by `required()`: the option must be given. */
  readonly required?: true;
  /** Set by `guard()`: `undefined` is not accepted as "not given". */
  readonly guard?: true;
};

export type Members = Readonly<Record<string, unknown>>;

/** Node's timers hold 32 bits: a longer wait would end at once. */
export const TIMER_MS_MAX = 2_147_483_647;

/** A rule from a test. `expected` ends the sentence "… is 5; use …". */
export function rule(expected: string, accepts: (value: unknown) => boolean): ValueRule {
  return (value, place, name) => (accepts(value) ? [] : [wrongValue(place, name, value, expected)]);
}

/** A rule from a function that returns the whole sentence, or null when the value is valid. */
export function sentenceRule<T>(faultOf: (value: T) => string | null | undefined): ValueRule {
  return (value, place, name) => {
    const sentence = faultOf(value as T);
    return sentence === null || sentence === undefined ? [] : [{ id: 'E011', message: `${place}: ${name}: ${sentence}` }];
  };
}

/** A rule from a function that throws: its message is the fault. */
export function parsedBy<T>(parse: (value: T) => unknown): ValueRule {
  return sentenceRule<T>((value) => {
    try {
      parse(value);
      return null;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  });
}

/** The fault never shows the value: it may be a password or a key. */
export function secret(expected: string, accepts: (value: unknown) => boolean): ValueRule {
  return (value, place, name) => (accepts(value) ? [] : [{ id: 'E011', message: `${place}: ${name} is not valid; use ${expected}.` }]);
}

export const anything: ValueRule = () => [];
export const text = rule('a string', (value) => typeof value === 'string');
export const filledText = rule('a non-empty string', (value) => typeof value === 'string' && value.trim() !== '');
export const headerName = rule(
  'the name of a header, such as "X-Request-ID"',
  (value) => typeof value === 'string' && /^[!#$%&'*+.^_`|~\w-]+$/.test(value),
);
export const flag = rule('true or false', (value) => typeof value === 'boolean');
export const aFunction = rule('a function', (value) => typeof value === 'function');
export const aDate = rule('a Date', (value) => value instanceof Date && !Number.isNaN(value.getTime()));
export const clock = objectWith('a clock: { now: () => Date }', 'now');
export const log = objectWith('a log with info, warn and error, such as pino()', 'info', 'warn', 'error');
/** A database, or a transaction on it. */
export const database = objectWith('a database: await openDatabase(url)', 'query', 'transaction');

/** What runs statements: a database or a transaction. */
export const queryable = objectWith('a database or a transaction: await openDatabase(url), or what db.transaction() gives', 'query');
export const aList = rule('a list: [ … ]', (value) => Array.isArray(value));
export const anObject = rule('an object: { … }', isMembers);
/** A table that is declared with `model()`. */
export const aModel = rule('a model: model(name, columns)', (value) => isMembers(value) && isMembers(value['columns']) && 'table' in value);

export function wholeNumber(min: number, max = Number.MAX_SAFE_INTEGER): ValueRule {
  const expected = max === Number.MAX_SAFE_INTEGER ? `an integer of ${min} or more` : `an integer from ${min} to ${max}`;
  return rule(expected, (value) => Number.isInteger(value) && (value as number) >= min && (value as number) <= max);
}

export function milliseconds(min: number, max = TIMER_MS_MAX): ValueRule {
  return rule(`a number of milliseconds from ${min} to ${max}`, (value) => typeof value === 'number' && value >= min && value <= max);
}

export function oneOf(...allowed: readonly unknown[]): ValueRule {
  const words = allowed.map((each) => JSON.stringify(each));
  const texts = allowed.filter((each) => typeof each === 'string');
  const expected = words.length < 2 ? words.join() : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
  return (value, place, name) => {
    if (allowed.includes(value)) return [];
    const fault = wrongValue(place, name, value, expected);
    const hint = typeof value === 'string' ? didYouMean(value, texts).trim() : '';
    return [hint === '' ? fault : { ...fault, hint }];
  };
}

/** An object, usually an instance of a class, with these functions. */
export function objectWith(expected: string, ...functions: readonly string[]): ValueRule {
  return rule(expected, (value) => isMembers(value) && functions.every((name) => typeof value[name] === 'function'));
}

export function instanceOf(type: abstract new (...given: never[]) => unknown, expected: string): ValueRule {
  return rule(expected, (value) => value instanceof type);
}

export function nullable(inner: ValueRule): ValueRule {
  return (value, place, name) => (value === null ? [] : inner(value, place, name));
}

export function required(inner: ValueRule): ValueRule {
  return Object.assign(((value, place, name) => inner(value, place, name)) as ValueRule, inner, { required: true } as const);
}

/**
 * An option without which more callers get in, see more or may do more. Given as `undefined`, it was read before it was set (an import cycle, a
 * misspelt member): a fault, never an absent option.
 */
export function guard(inner: ValueRule): ValueRule {
  return Object.assign(((value, place, name) => inner(value, place, name)) as ValueRule, inner, { guard: true } as const);
}

/** A table in which every option is a guard. */
export function guards<R extends Readonly<Record<string, ValueRule>>>(rules: R): R {
  return Object.fromEntries(Object.entries(rules).map(([name, each]) => [name, guard(each)])) as R;
}

/** Valid when one of the rules accepts the value. */
export function either(expected: string, ...rules: readonly ValueRule[]): ValueRule {
  return rule(expected, (value) => rules.some((each) => each(value, '', '').length === 0));
}

export function listOf(item: ValueRule, { min = 0 }: { readonly min?: number } = {}): ValueRule {
  return (value, place, name) => {
    if (!Array.isArray(value)) return [wrongValue(place, name, value, 'a list: [ … ]')];
    if (value.length < min) return [{ id: 'E011', message: `${place}: ${name} is empty; name at least ${min === 1 ? 'one' : min}.` }];
    return value.flatMap((each: unknown, index) => item(each, place, `${name}[${index}]`));
  };
}

/** An object whose names are free and whose values follow one rule. */
export function recordOf(item: ValueRule): ValueRule {
  return (value, place, name) =>
    isMembers(value)
      ? Object.entries(value).flatMap(([key, each]) => item(each, place, `${name}.${key}`))
      : [wrongValue(place, name, value, 'an object: { name: … }')];
}

export function wrongValue(place: string, name: string, value: unknown, expected: string): Fault {
  const fault = { id: 'E011', message: `${place}: ${name} is ${spelled(value)}; use ${expected}.` };
  return typeof value === 'function' && value.name !== '' ? { ...fault, hint: `Call it: ${value.name}(…).` } : fault;
}

export function undefinedOption(place: string, name: string): Fault {
  return {
    id: 'E011',
    message: `${place}: ${name} is undefined.`,
    hint: `Remove ${name}, or set it: a value from an import cycle, or of a misspelt name, is undefined.`,
  };
}

/** The value as a sentence shows it: short, and never the contents of an object. */
export function spelled(value: unknown): string {
  if (value === undefined) return 'missing';
  if (typeof value === 'function') return `the function ${value.name || 'itself'}`;
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'an object of another kind';
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 40));
  const plain = value as number | boolean | bigint | symbol | null;
  return String(plain);
}

export function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Members, and no behaviour: an object that was written as data, not an instance of a class. */
export function isPlainObject(value: unknown): value is Members {
  if (!isMembers(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
