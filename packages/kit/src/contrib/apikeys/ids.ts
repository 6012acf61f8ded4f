import type { UserDirectory } from '../../auth/user-directory.ts';

// PostgreSQL fails a statement, and the transaction around it, that compares a uuid or a number with any other text.

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const BITS = { integer: 32, bigint: 64 } as const;

export function couldBeKeyId(text: string): boolean {
  return UUID.test(text);
}

export function couldBeOwnerId(text: string, { idType = 'uuid' }: UserDirectory['table']): boolean {
  if (idType === 'text') return true;
  if (idType === 'uuid') return UUID.test(text);
  return /^-?\d{1,19}$/.test(text) && BigInt.asIntN(BITS[idType], BigInt(text)) === BigInt(text);
}
