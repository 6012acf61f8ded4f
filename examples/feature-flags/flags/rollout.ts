import { createHash } from 'node:crypto';

/** The same user always gets the same answer, and a higher percentage only adds users. Anonymous callers get what everyone has. */
export function isInRollout(flag: string, percentage: number, userId: string | null): boolean {
  if (percentage >= 100) return true;
  if (percentage <= 0 || userId === null) return false;
  const bucket = createHash('sha256').update(`${flag}:${userId}`).digest().readUInt32BE(0) % 100;
  return bucket < percentage;
}
