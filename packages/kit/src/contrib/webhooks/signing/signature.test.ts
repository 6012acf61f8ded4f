import { createHmac } from 'node:crypto';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { expect, test } from 'vitest';
import { InvalidSecret } from './secret.ts';
import { generateKeyPair, generateSecret, publicKeyOf, signatureHeader, signedHeaders, signingKey } from './signature.ts';
import { verifySignature } from '../receiving/verify.ts';

// Vectors published with the Standard Webhooks libraries and with Svix: public test data, not used anywhere.
const PUBLISHED = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', timestamp: 1614265330, body: '{"test": 2432232314}' };
const PUBLISHED_V1 = { secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=' };
const PUBLISHED_V1A = {
  secret: 'whsk_VEVTVFNJR05JTkdLRVlET05PVFVTRVRISVNGT1JBTlk=',
  signature: 'v1a,tQ9V2XOqn7jL/DQenEFpqIugdBVtiMmER5mhSkXBNwM0mkATuDe6KYYUuxqtaiHeYGb7KaaBRdM5WqyeFiL8Ag==',
};
const SVIX_V1A = {
  secret: 'whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==',
  publicKey: 'whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=',
};

test('the published v1 vector is reproduced', () => {
  expect(signatureHeader([signingKey(PUBLISHED_V1.secret)], PUBLISHED)).toBe(PUBLISHED_V1.signature);
});

test('the published v1a vector is reproduced and verifies with its public key', () => {
  const headers = signedHeaders([signingKey(PUBLISHED_V1A.secret)], PUBLISHED);
  expect(headers['webhook-signature']).toBe(PUBLISHED_V1A.signature);
  const now = new Date(PUBLISHED.timestamp * 1000);
  expect(verifySignature(publicKeyOf(PUBLISHED_V1A.secret), headers, PUBLISHED.body, { now }).id).toBe(PUBLISHED.id);
});

test('a private key printed as seed and public key (64 bytes) signs for the public key it holds', () => {
  expect(publicKeyOf(SVIX_V1A.secret)).toBe(SVIX_V1A.publicKey);
  const headers = signedHeaders([signingKey(SVIX_V1A.secret)], PUBLISHED);
  verifySignature(SVIX_V1A.publicKey, headers, PUBLISHED.body, { now: PUBLISHED.timestamp * 1000 });
});

test('a 64-byte private key whose halves do not belong together is refused', () => {
  const bytes = Buffer.from(SVIX_V1A.secret.slice(5), 'base64');
  bytes.writeUInt8(bytes.readUInt8(40) ^ 1, 40);
  expect(() => signingKey(`whsk_${bytes.toString('base64')}`)).toThrow(InvalidSecret);
});

for (const [name, Webhook] of [
  ['standardwebhooks', StandardWebhook],
  ['svix', SvixWebhook],
] as const) {
  test(`${name} verifies what we sign, and we verify what it signs`, () => {
    const secret = generateSecret();
    const body = '{"type":"order.paid","timestamp":"2026-01-02T03:04:05.000Z","data":{"name":"Zoë ☕"}}';
    const timestamp = Math.floor(Date.now() / 1000);
    const headers = signedHeaders([signingKey(secret)], { id: 'msg_a', timestamp, body });
    new Webhook(secret).verify(body, headers);
    expect(() => new Webhook(secret).verify(`${body} `, headers)).toThrow('No matching signature found');

    const theirs = { ...headers, 'webhook-signature': new Webhook(secret).sign('msg_a', new Date(timestamp * 1000), body) };
    expect(verifySignature(secret, theirs, body)).toEqual({ id: 'msg_a', timestamp: new Date(timestamp * 1000) });
  });

  test(`${name} accepts the double signature of a rotation with the new and with the old secret`, () => {
    const [current, previous] = [generateSecret(), generateSecret()];
    const timestamp = Math.floor(Date.now() / 1000);
    const headers = signedHeaders([signingKey(current), signingKey(previous)], { id: 'msg_b', timestamp, body: '{}' });
    expect(headers['webhook-signature']?.split(' ')).toHaveLength(2);
    new Webhook(current).verify('{}', headers);
    new Webhook(previous).verify('{}', headers);
    expect(() => new Webhook(generateSecret()).verify('{}', headers)).toThrow('No matching signature found');
  });
}

test('the signature is plain HMAC-SHA256 over id, timestamp and body, also for bytes that are not UTF-8', () => {
  const key = Buffer.alloc(32, 7);
  const body = Buffer.from([0xff, 0x00, 0xfe]);
  const expected = createHmac('sha256', key).update('msg_c.12.').update(body).digest('base64');
  expect(signatureHeader([signingKey(generateSecret(key))], { id: 'msg_c', timestamp: 12, body })).toBe(`v1,${expected}`);
});

test('a generated secret is whsec_ with 32 fresh random bytes', () => {
  const secret = generateSecret();
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(generateSecret()).not.toBe(secret);
});

test('a generated key pair is whsk_ and whpk_, and only the public key verifies', () => {
  const pair = generateKeyPair();
  expect(pair.privateKey).toMatch(/^whsk_[A-Za-z0-9+/]{43}=$/);
  expect(pair.publicKey).toMatch(/^whpk_[A-Za-z0-9+/]{43}=$/);
  const timestamp = Math.floor(Date.now() / 1000);
  const headers = signedHeaders([signingKey(pair.privateKey)], { id: 'msg_d', timestamp, body: 'x' });
  verifySignature(pair.publicKey, headers, 'x');
  expect(() => verifySignature(pair.privateKey, headers, 'x')).toThrow(InvalidSecret);
  expect(() => signingKey(pair.publicKey)).toThrow(InvalidSecret);
  expect(() => publicKeyOf(generateSecret())).toThrow(InvalidSecret);
});

test.each(['', 'whsec_', 'whsec_c2hvcnQ=', 'not base64!', 'whsec_%%%%', 'whsk_c2hvcnQ=', 'whpk_', `whsec_${'a b '.repeat(12)}`])(
  'the unusable secret %j is refused',
  (secret) => {
    expect(() => signingKey(secret)).toThrow(InvalidSecret);
  },
);

test.each(['c2hvcnQ', 'not_base64', 'almost+right='])('the refusal of a secret does not repeat it: %s', (material) => {
  for (const prefix of ['', 'whsec_', 'whsk_', 'whpk_']) expect(() => signingKey(prefix + material)).not.toThrow(material);
});

test('an id with a dot, a fractional timestamp and an empty key list are refused before signing', () => {
  const keys = [signingKey(generateSecret())];
  expect(() => signatureHeader(keys, { id: 'a.b', timestamp: 1, body: '' })).toThrow(TypeError);
  expect(() => signatureHeader(keys, { id: '', timestamp: 1, body: '' })).toThrow(TypeError);
  expect(() => signatureHeader(keys, { id: 'a', timestamp: 1.5, body: '' })).toThrow(TypeError);
  expect(() => signatureHeader([], { id: 'a', timestamp: 1, body: '' })).toThrow(InvalidSecret);
});
