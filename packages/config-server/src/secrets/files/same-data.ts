import { isDeepStrictEqual } from 'node:util';
import { jsonValue } from '../../client/json-value.ts';
import { NotEditable } from './place.ts';

/** A parser fails on a file that was written in an unusual way, and so do we. */
export function attempt<Result>(work: () => Result): Result | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

/** JSON values, for comparing: an integer may be a bigint on one side and a number on the other. */
export function plain(value: unknown): unknown {
  const text = JSON.stringify(value, (_, item: unknown) => (typeof item === 'bigint' ? exact(item) : item));
  return text === undefined ? value : jsonValue(text);
}

/** Whether two parsed values are the same, also integers that JSON does not carry. */
export function sameData(a: unknown, b: unknown): boolean {
  return isDeepStrictEqual(comparable(a), comparable(b));
}

function comparable(value: unknown): unknown {
  const integer = (item: bigint): number | string => (Number.isSafeInteger(Number(item)) ? Number(item) : String(item));
  const text = JSON.stringify(value, (_, item: unknown) => (typeof item === 'bigint' ? integer(item) : item));
  return text === undefined ? undefined : jsonValue(text);
}

function exact(value: bigint): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw new NotEditable('an integer beyond ±(2^53−1) cannot be encrypted; write it as a string');
  return number;
}
