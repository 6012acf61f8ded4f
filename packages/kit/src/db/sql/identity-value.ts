import { dbErrors } from '../errors.ts';
import type { ModelColumn } from './model-statements.ts';

type IdentityColumn = Pick<ModelColumn, 'name' | 'definition' | 'encode'>;

/**
 * The id of a user, the key of a tenant or of a record, which are text outside the database, as a value of a column; undefined when the column
 * cannot store it. A number has one text: if `07`, `0x7` and `7e0` were 7, one user or tenant would reach the rows of another.
 */
export function identityValue({ definition: { kind }, encode }: IdentityColumn, text: string): unknown {
  try {
    const value = kind === 'int' ? Number(text) : kind === 'bigint' ? BigInt(text) : text;
    if (String(value) !== text) return undefined;
    encode(value);
    return value;
  } catch {
    return undefined;
  }
}

/** The same for a row that is written: 422 when the column cannot store it. */
export function storedIdentity(column: IdentityColumn, text: string): unknown {
  const value = identityValue(column, text);
  if (value === undefined) throw dbErrors.value_not_storable({ detail: `${column.name} cannot store the id of this user or tenant.` });
  return value;
}
