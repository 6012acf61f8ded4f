import { createRequire } from 'node:module';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { InvalidToken, decrypt, decryptWithAny, encrypt, generateFernetKey, parseFernetKey } from './fernet.ts';

// generate.json, verify.json and invalid.json of github.com/fernet/spec: public test data, not used anywhere.
const KEY = 'cw_0x689RpI-jtRR7oE8h_eQsKImvJapLeSbXpwF4e4=';
const TOKEN = 'gAAAAAAdwJ6wAAECAwQFBgcICQoLDA0ODy021cpGVWKZ_eEwCGM4BLLF_5CV9dOPmrhuVUPgJobwOz7JcbmrR64jVmpU4IwqDA==';
const at = (text: string): Date => new Date(text);
const key = parseFernetKey(KEY);

test('generate.json: the published token is reproduced byte for byte', () => {
  const iv = Uint8Array.from({ length: 16 }, (_, index) => index);
  expect(encrypt(key, 'hello', at('1985-10-26T01:20:00-07:00'), iv)).toBe(TOKEN);
});

test('verify.json: the published token decrypts within its time to live', () => {
  expect(decrypt(key, TOKEN, { ttlSeconds: 60, now: at('1985-10-26T01:20:01-07:00') }).toString()).toBe('hello');
  expect(decrypt(key, TOKEN).toString()).toBe('hello');
});

const invalid: [string, string, string][] = [
  ['incorrect mac', 'gAAAAAAdwJ6xAAECAwQFBgcICQoLDA0OD3HkMATM5lFqGaerZ-fWPAl1-szkFVzXTuGb4hR8AKtwcaX1YdykQUFBQUFBQUFBQQ==', '01:20:01'],
  ['too short', 'gAAAAAAdwJ6xAAECAwQFBgcICQoLDA0OD3HkMATM5lFqGaerZ-fWPA==', '01:20:01'],
  ['invalid base64', '%%%%%%%%%%%%%AECAwQFBgcICQoLDA0OD3HkMATM5lFqGaerZ-fWPAl1-szkFVzXTuGb4hR8AKtwcaX1YdykRtfsH-p1YsUD2Q==', '01:20:01'],
  [
    'payload not a multiple of the block size',
    'gAAAAAAdwJ6xAAECAwQFBgcICQoLDA0OD3HkMATM5lFqGaerZ-fWPOm73QeoCk9uGib28Xe5vz6oxq5nmxbx_v7mrfyudzUm',
    '01:20:01',
  ],
  [
    'payload padding error',
    'gAAAAAAdwJ6xAAECAwQFBgcICQoLDA0ODz4LEpdELGQAad7aNEHbf-JkLPIpuiYRLQ3RtXatOYREu2FWke6CnJNYIbkuKNqOhw==',
    '01:20:01',
  ],
  [
    'far-future timestamp',
    'gAAAAAAdwStRAAECAwQFBgcICQoLDA0OD3HkMATM5lFqGaerZ-fWPAnja1xKYyhd-Y6mSkTOyTGJmw2Xc2a6kBd-iX9b_qXQcw==',
    '01:20:01',
  ],
  ['expired', 'gAAAAAAdwJ6xAAECAwQFBgcICQoLDA0OD3HkMATM5lFqGaerZ-fWPAl1-szkFVzXTuGb4hR8AKtwcaX1YdykRtfsH-p1YsUD2Q==', '01:21:31'],
  ['incorrect IV', 'gAAAAAAdwJ6xBQECAwQFBgcICQoLDA0OD3HkMATM5lFqGaerZ-fWPAkLhFLHpGtDBRLRTZeUfWgHSv49TF2AUEZ1TIvcZjK1zQ==', '01:20:01'],
  ['trailing characters after the padding', `${TOKEN}trailingdata`, '01:20:01'],
  [
    'invalid characters',
    '*gAAAAAAdwJ6wAAECAwQFBgcI!CQoLDA0ODy021?cpGVWKZ_eEwC@GM4BLLF_5CV9dOPmrhuVUPgJobwOz7JcbmrR64jVmpU4IwqDA==',
    '01:20:01',
  ],
  [
    'characters of the other alphabet',
    'gAAAAAAdwJ6wAAEC/AwQFBgcICQoLDA0ODy+021cpGVWKZ_eEwCGM4BLLF_5CV9dOPmrhuVUPgJobwOz7JcbmrR64jVmpU4IwqDA==',
    '01:20:01',
  ],
];
test.each(invalid)('invalid.json: %s is refused', (_name, token, time) => {
  expect(() => decrypt(key, token, { ttlSeconds: 60, now: at(`1985-10-26T${time}-07:00`) })).toThrow(InvalidToken);
});

test('a token without its padding, with whitespace, or of another version is refused', () => {
  const otherVersion = Buffer.from(TOKEN, 'base64url');
  otherVersion.writeUInt8(0x81, 0);
  for (const token of [TOKEN.replaceAll('=', ''), `${TOKEN}\n`, ` ${TOKEN}`, '', otherVersion.toString('base64')]) {
    expect(() => decrypt(key, token)).toThrow(InvalidToken);
  }
});

test('any flipped bit of a token is noticed', () => {
  const bytes = Buffer.from(TOKEN, 'base64url');
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const changed = Buffer.from(bytes);
    changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    const token = changed.toString('base64').replaceAll('+', '-').replaceAll('/', '_');
    expect(() => decrypt(key, token)).toThrow(InvalidToken);
  }
});

test('any message of bytes comes back unchanged, and no two tokens are alike', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (message) => {
      const own = parseFernetKey(generateFernetKey());
      const [token, again] = [encrypt(own, message, new Date()), encrypt(own, message, new Date())];
      expect(new Uint8Array(decrypt(own, token))).toEqual(message);
      expect(again).not.toBe(token);
    }),
  );
});

test('several keys: the first that fits decrypts and says which it was', () => {
  const [newest, older, foreign] = [generateFernetKey(), generateFernetKey(), generateFernetKey()].map((text) => parseFernetKey(text));
  if (newest === undefined || older === undefined || foreign === undefined) throw new Error('three keys expected');
  const token = encrypt(older, 'secret', new Date());
  expect(decryptWithAny([newest, older], token)).toEqual({ message: Buffer.from('secret'), keyIndex: 1 });
  expect(decryptWithAny([older, newest], token).keyIndex).toBe(0);
  expect(() => decryptWithAny([newest, foreign], token)).toThrow(InvalidToken);
  expect(() => decryptWithAny([], token)).toThrow(InvalidToken);
});

test.each(['', 'short', KEY.replace('=', ''), `${KEY} `, KEY.replace('_', '/'), Buffer.alloc(31).toString('base64')])(
  'the key %# is refused and not repeated',
  (text) => {
    expect(() => parseFernetKey(text)).toThrow(TypeError);
    expect(() => parseFernetKey(text)).not.toThrow(text || 'cw_0x');
  },
);

test('a generated key is 32 random bytes in padded base64url', () => {
  expect(generateFernetKey()).toMatch(/^[\w-]{43}=$/);
  expect(generateFernetKey()).not.toBe(generateFernetKey());
});

interface OtherFernet {
  Secret: new (key: string) => unknown;
  Token: new (options: { secret: unknown; token?: string; ttl?: number }) => { encode(message: string): string; decode(): string };
}

test('another Fernet implementation reads our tokens and we read its tokens', () => {
  const other = createRequire(import.meta.url)('fernet') as OtherFernet;
  const text = generateFernetKey();
  const [own, theirs] = [parseFernetKey(text), new other.Secret(text)];
  for (const message of ['whsec_c2VjcmV0', '', 'x'.repeat(500), 'Zoë ☕']) {
    expect(new other.Token({ secret: theirs, token: encrypt(own, message, new Date()), ttl: 0 }).decode()).toBe(message);
    expect(decrypt(own, new other.Token({ secret: theirs, ttl: 0 }).encode(message)).toString()).toBe(message);
  }
});
