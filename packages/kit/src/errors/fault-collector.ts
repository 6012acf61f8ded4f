import { INPUT_LIMITS } from '../options/input-limits.ts';
import { coreErrors } from './core-errors.ts';
import { isKitError, KitError, type FieldError } from './kit-error.ts';

/** Faults that one response lists. */
export const FAULTS_MAX = INPUT_LIMITS.errors;

/**
 * Runs several checks of one input and reports all faults at once. A check refuses by throwing a 422, or another error below 500 that names fields
 * in `errors`; every other error passes through. Faults of one kind keep their own error code and status, faults of several kinds are one
 * `validation_error`.
 */
export class FaultCollector {
  readonly #refusals: KitError[] = [];

  /** The result of the check; undefined where it refuses. */
  check<T>(check: () => Promise<T>): Promise<T | undefined>;
  check<T>(check: () => T): T | undefined;
  check<T>(check: () => T | Promise<T>): T | undefined | Promise<T | undefined> {
    try {
      const result = check();
      return result instanceof Promise ? result.catch((error: unknown) => this.#keep(error)) : result;
    } catch (error) {
      return this.#keep(error);
    }
  }

  refuse(error: KitError): void {
    this.#refusals.push(error);
  }

  add(...faults: readonly FieldError[]): void {
    if (faults.length > 0) this.refuse(coreErrors.validation_error({ errors: faults.slice(0, FAULTS_MAX) }));
  }

  throwIfAny(): void {
    const [first, ...others] = this.#refusals;
    if (first === undefined) return;
    if (others.length === 0) throw first;
    const errors = this.#refusals.flatMap(fieldErrorsOf).slice(0, FAULTS_MAX);
    const message = [...new Set(this.#refusals.map((refusal) => refusal.message))].join(' ');
    if (others.some(({ code }) => code !== first.code)) throw coreErrors.validation_error({ errors, message });
    const detail = [...new Set(this.#refusals.map((refusal) => refusal.detail))].join(' ');
    throw new KitError({ code: first.code, status: first.status, title: first.title, detail, errors, message });
  }

  #keep(error: unknown): undefined {
    if (!isRefusedInput(error)) throw error;
    this.refuse(error);
  }
}

/** The results of all checks, or one 422 with the faults of all that refuse: `checkAll({ days: () => …, limit: () => … })`. */
export function checkAll<C extends Readonly<Record<string, () => unknown>>>(checks: C): { readonly [K in keyof C]: ReturnType<C[K]> } {
  const faults = new FaultCollector();
  const results = Object.entries(checks).map(([name, check]) => [name, faults.check(check)]);
  faults.throwIfAny();
  return Object.fromEntries(results) as { readonly [K in keyof C]: ReturnType<C[K]> };
}

function isRefusedInput(error: unknown): error is KitError {
  return isKitError(error) && (error.status === 422 || (error.status < 500 && error.errors !== undefined));
}

function fieldErrorsOf({ errors, code, detail }: KitError): readonly FieldError[] {
  return errors ?? [{ location: ['body'], code, message: detail }];
}
