import type { FieldError } from '../../errors/kit-error.ts';
import type { ControllerLimits } from '../declare/limits.ts';
import { type OrderingOptions, orderTerm, type OrderTerm } from '../options/ordering.ts';
import type { Policy } from '../policy/policy.ts';
import type { View } from '../policy/view.ts';
import { unknownName } from './shape.ts';

/** Newest first where the key is made in order of time (UUIDv7), by key otherwise. */
export function defaultOrdering(policy: Policy, options: OrderingOptions | undefined): readonly OrderTerm[] {
  if (options?.default !== undefined && options.default.length > 0) return options.default.map(orderTerm);
  const { name, settings } = policy.key;
  return [{ column: name, descending: settings.kind === 'uuid' && settings.default !== undefined }];
}

/** The declared columns that this caller may order by. */
export function orderableColumns(view: View, options: OrderingOptions | undefined): string[] {
  return (options?.by ?? []).filter((name) => view.comparable(name, 'order') !== undefined);
}

/** What of a list its ordering is read by. */
interface OrderedList {
  readonly ordering: OrderingOptions | undefined;
  readonly limits: ControllerLimits;
}

/** Reads `ordering=-total,created_at`. What the caller may not see it may not order by. */
export function readOrdering(
  { ordering, limits }: OrderedList,
  view: View,
  given: readonly string[],
  location: readonly (string | number)[],
  faults: FieldError[],
): readonly OrderTerm[] {
  const usable = orderableColumns(view, ordering);
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
