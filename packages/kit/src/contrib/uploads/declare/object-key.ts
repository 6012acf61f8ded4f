import { createHash, randomBytes } from 'node:crypto';
import { safeFileName } from './file-name.ts';

export type KeyArea = 'pending' | 'final';

export interface KeyPlace {
  /** The store's; empty or `a/b`. */
  readonly prefix: string;
  readonly installationId: string;
}

/** Everything this installation has in the store lies under it. */
export function installationPrefix({ prefix, installationId }: KeyPlace): string {
  return prefix === '' ? `${installationId}/` : `${prefix}/${installationId}/`;
}

/** `<prefix>/<installation>/<pending|final>/<owner>/<32 hex>/<file name>`: cannot be guessed, and nothing of it is taken from a client as it is. */
export function newObjectKey(
  place: KeyPlace,
  area: KeyArea,
  owner: string,
  fileName: string,
  random: () => Buffer = () => randomBytes(16),
): string {
  return `${installationPrefix(place)}${area}/${ownerPart(owner)}/${random().toString('hex')}/${safeFileName(fileName)}`;
}

/** Ids of users may be anything; what is not a plain word is replaced by its hash. */
function ownerPart(owner: string): string {
  return /^[A-Za-z0-9_-]{1,64}$/.test(owner) ? owner : `h-${createHash('sha256').update(owner).digest('hex').slice(0, 32)}`;
}
