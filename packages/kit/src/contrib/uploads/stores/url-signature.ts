import { createHmac, timingSafeEqual } from 'node:crypto';

/** What a signed address of the disk store allows: this one request. */
export interface SignedAddress {
  readonly method: 'PUT' | 'GET';
  readonly id: string;
  /** Seconds since 1970. */
  readonly expires: number;
  /** Of a PUT: what must be sent, exactly. */
  readonly length?: number | undefined;
  readonly type?: string | undefined;
  readonly sha256?: string | undefined;
  readonly part?: number | undefined;
  /** Of a GET: inline, or as a file to save. */
  readonly disposition?: 'inline' | 'attachment' | undefined;
}

export const URL_KEY_LENGTH_MIN = 32;

/** Keys as `UPLOAD_URL_KEYS` lists them: the first signs, all verify. */
export function readUrlKeys(text: string): readonly string[] {
  return text
    .split(',')
    .map((key) => key.trim())
    .filter((key) => key !== '');
}

/** The query of the address, signature included. */
export function signAddress(address: SignedAddress, keys: readonly string[]): string {
  const [key] = keys;
  if (key === undefined) throw new Error('There is no key to sign addresses with.');
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(members(address))) if (value !== '') query.set(name, value);
  query.set('signature', signatureOf(address, key));
  return query.toString();
}

/** Whether one of the keys signed exactly this. */
export function verifiesAddress(address: SignedAddress, signature: string, keys: readonly string[]): boolean {
  const given = Buffer.from(signature, 'base64url');
  let valid = false;
  for (const key of keys) {
    const expected = Buffer.from(signatureOf(address, key), 'base64url');
    if (given.length === expected.length && timingSafeEqual(given, expected)) valid = true;
  }
  return valid;
}

function signatureOf(address: SignedAddress, key: string): string {
  // As JSON no member can be mistaken for another one.
  const text = JSON.stringify(['kit-upload-address-1', address.method, address.id, members(address)]);
  return createHmac('sha256', key).update(text).digest('base64url');
}

function members({ expires, length, type, sha256, part, disposition }: SignedAddress): Record<string, string> {
  return {
    expires: String(expires),
    length: length === undefined ? '' : String(length),
    type: type ?? '',
    sha256: sha256 ?? '',
    part: part === undefined ? '' : String(part),
    disposition: disposition ?? '',
  };
}
