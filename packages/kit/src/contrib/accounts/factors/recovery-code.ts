import { createHash, randomBytes } from 'node:crypto';
import { toBase32 } from '../../../auth/request/totp.ts';

export const RECOVERY_CODES = 10;
/** 80 bits: a stolen table of digests cannot be searched for them. */
const CODE_BYTES = 10;
const CODE = /^[A-Z2-7]{16}$/;

/** In groups of four, for people who write it down: `ABCD-EFGH-IJKL-MNOP`. */
export function newRecoveryCode(): string {
  return (toBase32(randomBytes(CODE_BYTES)).match(/.{4}/g) as string[]).join('-');
}

/** As it was printed: case, spaces and hyphens do not count. Null when it cannot be one. */
export function normalizeRecoveryCode(text: string): string | null {
  const code = text.replaceAll(/[\s-]/g, '').toUpperCase();
  return CODE.test(code) ? code : null;
}

export function recoveryDigest(code: string): string {
  return createHash('sha256')
    .update(normalizeRecoveryCode(code) ?? '')
    .digest('hex');
}
