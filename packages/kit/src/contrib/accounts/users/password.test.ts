import { expect, test } from 'vitest';
import { decoyHash, hashPassword, isCost, needsRehash, verifyPassword, type PasswordCost } from './password.ts';

const CHEAP: PasswordCost = { logN: 4, r: 8, p: 1 };

test('a password verifies against its own hash and no other', async () => {
  const hash = await hashPassword('correct horse battery', CHEAP);
  expect(await verifyPassword('correct horse battery', hash)).toBe(true);
  expect(await verifyPassword('correct horse batterz', hash)).toBe(false);
  expect(await verifyPassword('', hash)).toBe(false);
});

test('two hashes of one password share nothing but their parameters', async () => {
  const [a, b] = await Promise.all([hashPassword('same', CHEAP), hashPassword('same', CHEAP)]);
  expect(a).not.toBe(b);
  expect(a).toMatch(/^\$scrypt\$ln=4,r=8,p=1\$/);
});

test('a hash made at another cost still verifies and asks to be made again', async () => {
  const old = await hashPassword('correct horse battery', { logN: 3, r: 4, p: 2 });
  expect(await verifyPassword('correct horse battery', old)).toBe(true);
  expect(needsRehash(old, CHEAP)).toBe(true);
  expect(needsRehash(await hashPassword('x', CHEAP), CHEAP)).toBe(false);
});

test('a password typed composed or decomposed is the same password', async () => {
  const hash = await hashPassword('Zo\u00eb is here now', CHEAP);
  expect(await verifyPassword('Zoe\u0308 is here now', hash)).toBe(true);
});

test.each(['', '!', 'plain', '$scrypt$ln=4,r=8,p=1$short$short', `$scrypt$ln=30,r=8,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`])(
  'a stored value that is no hash (%j) verifies nothing and cannot raise the cost',
  async (hash) => {
    expect(await verifyPassword('anything at all', hash)).toBe(false);
    expect(needsRehash(hash)).toBe(true);
  },
);

test('a decoy is a well-formed hash at the wanted cost that nothing verifies against', async () => {
  expect(needsRehash(decoyHash(CHEAP), CHEAP)).toBe(false);
  expect(await verifyPassword('anything', decoyHash(CHEAP))).toBe(false);
});

test('many logins at once all get their answer', async () => {
  const hash = await hashPassword('correct horse battery', CHEAP);
  const answers = await Promise.all(
    Array.from({ length: 30 }, (_, i) => verifyPassword(i % 2 === 0 ? 'correct horse battery' : 'no', hash)),
  );
  expect(answers.filter(Boolean)).toHaveLength(15);
});

test.each([
  [{ logN: 15, r: 8, p: 3 }, true],
  [{ logN: 0, r: 8, p: 1 }, false],
  [{ logN: 21, r: 8, p: 1 }, false],
  [{ logN: 15, r: 8.5, p: 1 }, false],
])('the cost %j is usable: %s', (cost, usable) => {
  expect(isCost(cost)).toBe(usable);
});

test.each([
  { logN: 1, r: 1, p: 1 },
  { logN: 1, r: 1, p: 16 },
  { logN: 2, r: 32, p: 16 },
])('every cost the options accept can be computed: %j', async (cost) => {
  expect(await verifyPassword('correct horse', await hashPassword('correct horse', cost))).toBe(true);
});
