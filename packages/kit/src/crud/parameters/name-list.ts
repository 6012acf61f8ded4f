import type { FieldError } from '../../errors/kit-error.ts';

/** The names of a list such as `ordering=-total,created_at`, or of the same parameter repeated. An empty name is an error, wherever it is. */
export function readNames(
  given: string | readonly string[],
  noun: 'name' | 'column',
  location: readonly (string | number)[],
  faults: FieldError[],
): string[] {
  const all = [given].flat().flatMap((text) => text.split(','));
  const names = all.filter((name) => name !== '');
  if (names.length === 0) faults.push({ location, code: 'required', message: `Give at least one ${noun}.` });
  else if (names.length < all.length) faults.push({ location, code: 'required', message: `A ${noun} is empty. Remove the extra comma.` });
  return names;
}
