import type { FieldError } from '../../errors/kit-error.ts';
import type { Visibility } from '../policy/crud-request.ts';
import type { ControllerLimits } from '../declare/limits.ts';
import type { Policy } from '../policy/policy.ts';
import { unknownName } from './shape.ts';

/** One column of an ordering. */
export interface OrderTerm {
  readonly column: string;
  readonly descending: boolean;
}

export interface OrderingOptions {
  /** Columns a client may order by; ascending, or descending with a leading minus. */
  readonly by: readonly string[];
  /** Unless the client says; newest first where the key tells time. */
  readonly default?: readonly string[];
}

/** `-created_at` → `{ column: 'created_at', descending: true }`. */
export function orderTerm(text: string): OrderTerm {
  return text.startsWith('-') ? { column: text.slice(1), descending: true } : { column: text, descending: false };
}

/** Newest first where the key is made in order of time (UUIDv7), by key otherwise. */
export function defaultOrdering(policy: Policy, options: OrderingOptions | undefined): readonly OrderTerm[] {
  if (options?.default !== undefined && options.default.length > 0) return options.default.map(orderTerm);
  const { name, settings } = policy.key;
  return [{ column: name, descending: settings.kind === 'uuid' && settings.default !== undefined }];
}

/** The declared columns that this caller may order by. */
export function orderableColumns(policy: Policy, options: OrderingOptions | undefined, visibility: Visibility): string[] {
  return (options?.by ?? []).filter((name) => {
    const shown = policy.shown.get(name);
    return shown !== undefined && policy.sees(visibility, shown) === true;
  });
}

/** What of a list its ordering is read by. */
interface OrderedList {
  readonly policy: Policy;
  readonly ordering: OrderingOptions | undefined;
  readonly limits: ControllerLimits;
}

/** Reads `ordering=-total,created_at`. What the caller may not see it may not order by. */
export function readOrdering(
  { policy, ordering, limits }: OrderedList,
  visibility: Visibility,
  given: readonly string[],
  location: readonly (string | number)[],
  faults: FieldError[],
): readonly OrderTerm[] {
  const usable = orderableColumns(policy, ordering, visibility);
  if (given.length === 0) {
    faults.push({ location, code: 'required', message: 'Give at least one column.' });
    return [];
  }
  if (given.length > limits.orderingColumns) {
    faults.push({ location, code: 'too_many', message: `At most ${limits.orderingColumns} columns.` });
    return [];
  }
  const terms = given.map(orderTerm);
  for (const [index, { column }] of terms.entries()) {
    if (!usable.includes(column)) faults.push({ ...unknownName('ordering', column, usable), location });
    else if (terms.findIndex((term) => term.column === column) !== index)
      faults.push({ location, code: 'duplicate', message: `"${column}" is given twice.` });
  }
  return terms;
}
