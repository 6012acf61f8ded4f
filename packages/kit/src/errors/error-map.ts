import { isErrorDefinition, type ErrorDefinition } from './catalog.ts';
import { KitError } from './kit-error.ts';
import { type OptionRules, readOptions } from '../options/read-options.ts';
import { aFunction, either, filledText, objectWith, required, text, wholeNumber } from '../options/value-rule.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- any argument list: only identity and instanceof are used
export type ErrorClass<E extends Error = Error> = abstract new (...args: any[]) => E;

/** How errors of a class are answered. */
export interface ErrorRule<E extends Error = Error> {
  /** The HTTP status. */
  readonly status: number;
  /** The code in the response: a promise to clients. */
  readonly code: string;
  /** Public sentence; the error's own message is never sent unless this function returns it. */
  readonly detail?: string | ((error: E) => string);
  /** Extra public members of the body. */
  readonly body?: Readonly<Record<string, unknown>> | ((error: E) => Readonly<Record<string, unknown>>);
  /** Headers of the response. */
  readonly headers?: Readonly<Record<string, string>> | ((error: E) => Readonly<Record<string, string>>);
}

const textOrFunction = either('a string, or a function that returns one', text, aFunction);
const objectOrFunction = either('an object, or a function that makes one', objectWith('an object'), aFunction);
const ruleRules: OptionRules<ErrorRule> = {
  status: required(wholeNumber(400, 599)),
  code: required(filledText),
  detail: textOrFunction,
  body: objectOrFunction,
  headers: objectOrFunction,
};

interface MapEntry {
  readonly type: ErrorClass;
  readonly rule: ErrorRule;
}

/** An immutable list of "errors of this class become this answer". Within one map the most specific class wins. */
export class ErrorMap {
  readonly entries: readonly MapEntry[];

  constructor(entries: readonly MapEntry[] = []) {
    this.entries = entries;
  }

  on<E extends Error>(type: ErrorClass<E>, rule: ErrorRule<E> | ErrorDefinition): ErrorMap {
    const plain: ErrorRule<E> = isErrorDefinition(rule) ? { status: rule.status, code: rule.code, detail: rule.detail } : rule;
    if (typeof type !== 'function') throw new TypeError('errors().on(): the first argument is an error class.');
    readOptions(`errors().on(${type.name})`, plain as ErrorRule, ruleRules);
    return new ErrorMap([...this.entries, { type, rule: plain as unknown as ErrorRule }]);
  }

  /** The rule for errors of exactly this class, or of its nearest mapped ancestor. */
  ruleFor(type: ErrorClass): ErrorRule | undefined {
    let found: MapEntry | undefined;
    for (const entry of this.entries) {
      if (isSubclass(type, entry.type) && (found === undefined || isSubclass(entry.type, found.type))) found = entry;
    }
    return found?.rule;
  }

  /** The answer for this error, or undefined when no class of the map covers it. */
  translate(error: Error): KitError | undefined {
    let found: MapEntry | undefined;
    for (const entry of this.entries) {
      if (error instanceof entry.type && (found === undefined || isSubclass(entry.type, found.type))) found = entry;
    }
    return found === undefined ? undefined : apply(found.rule, error);
  }
}

/**
 * An empty error map: the errors that classes of other libraries become when a handler throws them.
 *
 * @example
 * ```ts
 * const shopErrors = errors().on(StripeCardError, paymentErrors.card_declined);
 * createApp({ errors: shopErrors, mount });
 * ```
 */
export function errors(): ErrorMap {
  return new ErrorMap();
}

function isSubclass(type: ErrorClass, ancestor: ErrorClass): boolean {
  return type === ancestor || ancestor.prototype.isPrototypeOf(type.prototype as object);
}

function apply(rule: ErrorRule, error: Error): KitError {
  return new KitError({
    code: rule.code,
    status: rule.status,
    detail: typeof rule.detail === 'function' ? rule.detail(error) : (rule.detail ?? sentence(rule.code)),
    extensions: typeof rule.body === 'function' ? rule.body(error) : rule.body,
    headers: typeof rule.headers === 'function' ? rule.headers(error) : rule.headers,
    message: error.message,
    cause: error,
  });
}

function sentence(code: string): string {
  const words = code.replaceAll('_', ' ');
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
}
