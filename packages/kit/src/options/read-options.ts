import { didYouMean, nearest } from './did-you-mean.ts';
import type { Fault } from './fault.ts';
import { isMembers, isPlainObject, undefinedOption, type ValueRule, wrongValue } from './value-rule.ts';

/** One rule per option: an option without a rule does not compile. */
export type OptionRules<T> = { readonly [Name in keyof Required<T>]: ValueRule };

type AnyRules = Readonly<Record<string, ValueRule>>;

/** Thrown by a factory that was given options it cannot work with: every fault at once, one line each. */
export class InvalidOptions extends TypeError {
  readonly code = 'invalid_options';
  readonly faults: readonly Fault[];

  constructor(faults: readonly Fault[]) {
    super(faults.map(({ message, hint }) => (hint === undefined ? message : `${message} ${hint}`)).join('\n'));
    this.name = 'InvalidOptions';
    this.faults = faults;
  }
}

/**
 * The options as they were given, once every name and value is checked. Throws InvalidOptions.
 * `place` is the call as a user writes it: `readOptions('accounts()', options, rules)`.
 */
export function readOptions<T extends object>(place: string, given: T | undefined, rules: OptionRules<T>): T {
  const faults = optionFaults(place, given, rules);
  if (faults.length > 0) throw new InvalidOptions(faults);
  return given ?? ({} as T);
}

/**
 * Refuses a call whose arguments are not what the function takes, before it does anything with them. `place` is the call as a user writes it:
 * `requireArguments('find()', { db, model }, { db: queryable, model: aModel })`.
 */
export function requireArguments<const N extends string>(
  place: string,
  given: Readonly<Record<N, unknown>>,
  rules: Readonly<Record<N, ValueRule>>,
): void {
  const faults: Fault[] = [];
  for (const name in rules) faults.push(...rules[name](given[name], place, name));
  if (faults.length > 0) throw new InvalidOptions(faults);
}

/** What is wrong with an options object, for callers that collect the faults of several. */
export function optionFaults<T extends object>(place: string, given: T | undefined, rules: OptionRules<T>): Fault[] {
  const options: unknown = given ?? {};
  if (given === null || !isMembers(options)) return [wrongValue(place, 'the options object', given, '{ … }')];
  return [...unknownNames(place, options, Object.keys(rules)), ...valueFaults(place, options, rules)];
}

/** Unknown names would be ignored; every one of them is a fault. */
export function unknownNames(place: string, given: object, known: readonly string[], prefix = ''): Fault[] {
  const faults: Fault[] = [];
  for (const name of Object.keys(given)) {
    if (known.includes(name)) continue;
    const hint = didYouMean(name, known).trim() || (known.length === 0 ? 'There are no options.' : `Known: ${known.join(', ')}.`);
    faults.push({ id: 'E001', message: `${place}: unknown option "${prefix}${name}".`, hint });
  }
  return faults;
}

/** For functions that run with every request: names only, and nothing is built unless one is wrong. */
export function refuseUnknownNames(place: string, given: object, known: ReadonlySet<string>): void {
  if (typeof given !== 'object' || given === null)
    throw new InvalidOptions([wrongValue(place, 'the options object', given, `{ ${[...known].join(', ')} }`)]);
  for (const name of Object.keys(given)) if (!known.has(name)) throw new InvalidOptions(unknownNames(place, given, [...known]));
}

export function valueFaults(place: string, given: Readonly<Record<string, unknown>>, rules: AnyRules, prefix = ''): Fault[] {
  const faults: Fault[] = [];
  for (const [name, rule] of Object.entries(rules)) {
    const value = given[name];
    if (value === undefined && rule.guard === true && rule.required !== true && Object.hasOwn(given, name))
      faults.push(undefinedOption(place, prefix + name));
    else if (value !== undefined || rule.required === true) faults.push(...rule(value, place, prefix + name));
  }
  return faults;
}

/** An options object inside another: unknown names and wrong values are faults as on the outside. */
export function objectOf<T extends object>(rules: OptionRules<T>): ValueRule {
  const known = Object.keys(rules);
  return (value, place, name) => {
    if (!isMembers(value)) return [wrongValue(place, name, value, `an object: { ${known.join(', ')} }`)];
    return [...unknownNames(place, value, known, `${name}.`), ...valueFaults(place, value, rules, `${name}.`)];
  };
}

/**
 * An object that implements an interface: a middleware, a module, an authenticator. A plain object has the interface's members only; an
 * instance of a class may have others, but none that looks like a misspelt member.
 */
export function implementationOf<T extends object>(expected: string, rules: OptionRules<T>): ValueRule {
  const known = Object.keys(rules);
  const mandatory = known.filter((member) => rules[member as keyof T]?.required === true);
  return (value, place, name) => {
    if (!isMembers(value) || mandatory.some((member) => value[member] === undefined)) return [wrongValue(place, name, value, expected)];
    const wrong = valueFaults(place, value, rules, `${name}.`);
    if (isPlainObject(value)) return [...unknownNames(place, value, known, `${name}.`), ...wrong];
    const others = Object.keys(value).filter((member) => !known.includes(member) && nearest(member, known) !== undefined);
    return [...unknownNames(place, Object.fromEntries(others.map((member) => [member, null])), known, `${name}.`), ...wrong];
  };
}
