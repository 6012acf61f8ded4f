/** SHA-256 in base64, as S3 writes it. */
export const CHECKSUM_PATTERN = '^[A-Za-z0-9+/]{43}=$';

/** Two spellings can mean the same bytes: the last character carries two unused bits. */
export function normalChecksum(base64: string): string {
  return Buffer.from(base64, 'base64').toString('base64');
}
