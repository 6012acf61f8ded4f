import { isUuid } from '../../db/values/uuid.ts';

/** Whether two ids of users are the same by value: a number or bigint of the database equals its text, a UUID itself in upper case. */
export function sameId(a: unknown, b: unknown): boolean {
  const left = idText(a);
  const right = idText(b);
  if (left === undefined || right === undefined) return false;
  return left === right || (left.length === right.length && left.toLowerCase() === right.toLowerCase() && isUuid(left));
}

function idText(id: unknown): string | undefined {
  if (typeof id === 'string') return id === '' ? undefined : id;
  return typeof id === 'number' || typeof id === 'bigint' ? String(id) : undefined;
}
