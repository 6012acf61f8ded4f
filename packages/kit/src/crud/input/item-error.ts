import { constraintFault } from '../../db/engine/constraint-fault.ts';
import { type FieldError, isKitError, KitError } from '../../errors/kit-error.ts';

type Location = FieldError['location'];

/**
 * The error of one item of a body that has several, its faults at their places below the item. Undefined for what is no fault of the request.
 * Headers are left out: they describe the whole response. `valuesAt`: where its values are, when several rows share them.
 */
export function itemError(error: unknown, at: Location, valuesAt: Location = at): KitError | undefined {
  // Of the whole request: it may be run again.
  if (isKitError(error, 'write_conflict')) return undefined;
  const known = isKitError(error) ? error : constraintFault(error);
  if (known === undefined) return undefined;
  const { code, status, title, detail, extensions, errors } = known;
  return new KitError({
    code,
    status,
    title,
    detail,
    extensions,
    errors: errors?.map((fault) => ({ location: placeBelow(at, valuesAt, fault.location), code: fault.code, message: fault.message })) ?? [
      { location: at, code, message: detail },
    ],
    cause: error,
  });
}

/** Runs the work of one item; what it throws says which item it was. */
export async function atItem<R>(at: Location, work: () => Promise<R>, valuesAt: Location = at): Promise<R> {
  try {
    return await work();
  } catch (error) {
    throw itemError(error, at, valuesAt) ?? error;
  }
}

/** `['body', 'sku']` → `['body', 'items', 3, 'sku']`; a place below the item already stays as it is. */
export function placeBelow(at: Location, valuesAt: Location, location: Location): Location {
  const isBelow = (place: Location): boolean => place.every((step, index) => location[index] === step);
  // A column may have the name of the member with the values: then its place is no longer than that of the member.
  if (isBelow(at) || (isBelow(valuesAt) && location.length > valuesAt.length)) return location;
  return location[0] === 'body' ? [...valuesAt, ...location.slice(1)] : location;
}
