import { coreErrors } from '../../errors/core-errors.ts';
import { ErrorMap } from '../../errors/error-map.ts';
import type { FieldError, KitError } from '../../errors/kit-error.ts';
import { constraintViolation } from './constraint-violation.ts';
import { dbErrors } from '../errors.ts';

const FIELDS = {
  unique: { code: 'not_unique', message: 'Another record has this value already.' },
  foreign_key: { code: 'unknown_reference', message: 'There is no such record.' },
  not_null: { code: 'required', message: 'Required.' },
  check: { code: 'invalid', message: 'The database does not allow this value.' },
} as const;

/**
 * What a broken rule of the database means to the caller who sent the values; undefined for other errors. `at` is where the values are.
 * Default: `['body']`. Nothing of the database's own text is part of it.
 */
export function constraintFault(error: unknown, at: FieldError['location'] = ['body']): KitError | undefined {
  const violation = constraintViolation(error);
  if (violation === undefined) return undefined;
  if (violation.kind === 'restrict') return dbErrors.still_referenced({ cause: error });
  const field = FIELDS[violation.kind];
  const errors = violation.columns?.map((column) => ({ location: [...at, column], ...field }));
  if (violation.kind === 'unique') return coreErrors.conflict({ detail: field.message, errors, cause: error });
  // Which value it was is not always known; that it was one of these is.
  return coreErrors.validation_error({ errors: errors ?? [{ location: at, ...field }], cause: error });
}

class ConstraintErrorMap extends ErrorMap {
  override translate(error: Error): KitError | undefined {
    return constraintFault(error);
  }
}

/** The last map of every route: a rule of the database that a handler broke is a fault of the request, not of the server. */
export const constraintErrors: ErrorMap = new ConstraintErrorMap();
