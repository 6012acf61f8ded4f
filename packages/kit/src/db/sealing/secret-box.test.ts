import { expect, test } from 'vitest';
import { decrypt, generateFernetKey, parseFernetKey } from './fernet.ts';
import { SecretUnavailable, secretBox as box, type SecretBoxOptions } from './secret-box.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const WORDS = { what: 'the signing secret', setting: 'WEBHOOK_SECRET_KEYS', command: 'kit webhooks generate-key' };
const secretBox = (options: Omit<SecretBoxOptions, keyof typeof WORDS>) => box({ ...WORDS, ...options });

test('with a key a secret is stored as fernet:<token> that any Fernet library can read', () => {
  const key = generateFernetKey();
  const stored = secretBox({ keys: [key] }).seal(secret);
  expect(stored).toMatch(/^fernet:gAAAAA[\w-]+=*$/);
  expect(stored).not.toContain(secret);
  expect(decrypt(parseFernetKey(key), stored.slice('fernet:'.length)).toString()).toBe(secret);
  expect(secretBox({ keys: [key] }).open(stored)).toBe(secret);
});

test('without keys a secret is stored as given', () => {
  expect(secretBox({}).seal(secret)).toBe(secret);
  expect(secretBox({}).open(secret)).toBe(secret);
  expect(secretBox({}).reseal(secret)).toBeNull();
});

test('a secret stored before keys were configured is still readable, and is sealed on re-encryption', () => {
  const sealing = secretBox({ keys: [generateFernetKey()] });
  expect(sealing.open(secret)).toBe(secret);
  const sealed = sealing.reseal(secret) ?? '';
  expect(sealed).toMatch(/^fernet:/);
  expect(sealing.open(sealed)).toBe(secret);
});

test('rotation: new key first, old tokens stay readable, re-encryption moves them, then the old key can go', () => {
  const [old, next] = [generateFernetKey(), generateFernetKey()];
  const stored = secretBox({ keys: [old] }).seal(secret);
  const during = secretBox({ keys: [next, old] });
  expect(during.open(stored)).toBe(secret);
  const moved = during.reseal(stored) ?? '';
  expect(during.reseal(moved)).toBeNull();
  expect(secretBox({ keys: [next] }).open(moved)).toBe(secret);
  expect(() => secretBox({ keys: [next] }).open(stored)).toThrow(SecretUnavailable);
});

test('a token that cannot be read is a typed error that names no secret and no token', () => {
  const stored = secretBox({ keys: [generateFernetKey()] }).seal(secret);
  for (const other of [secretBox({}), secretBox({ keys: [generateFernetKey()] })]) {
    expect(() => other.open(stored)).toThrow(SecretUnavailable);
    expect(() => other.open(stored)).not.toThrow(stored.slice(7));
  }
  expect(() => secretBox({ keys: [generateFernetKey()] }).open('fernet:garbage')).toThrow(SecretUnavailable);
});

test('strict storage is refused at once without a key and never stores plain text with one', () => {
  expect(() => secretBox({ strict: true })).toThrow(/WEBHOOK_SECRET_KEYS/);
  expect(() => secretBox({ strict: true, keys: [] })).toThrow(/generate-key/);
  expect(secretBox({ strict: true, keys: [generateFernetKey()] }).seal(secret)).toMatch(/^fernet:/);
});

test('a raw secret that looks like a token is refused instead of being lost', () => {
  expect(() => secretBox({}).seal('fernet:whatever')).toThrow(TypeError);
});

test('the token is dated by the given clock', () => {
  const key = generateFernetKey();
  const stored = secretBox({ keys: [key], clock: () => new Date(1_000_000_000_000) }).seal(secret);
  expect(Buffer.from(stored.slice(7), 'base64url').readBigUInt64BE(1)).toBe(1_000_000_000n);
});

test('an unusable key is refused immediately, with the setting and the command', () => {
  expect(() => secretBox({ keys: ['nonsense'] })).toThrow(TypeError);
  expect(() => secretBox({ keys: [generateFernetKey(), 'nonsense'] })).toThrow(
    'Key 2 of 2 in WEBHOOK_SECRET_KEYS cannot be used. A Fernet key is 32 bytes in padded base64url. Create one with `kit webhooks generate-key`.',
  );
});
