import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';

/** scrypt's cost: memory is 128 · 2^logN · r bytes. */
export interface PasswordCost {
  /** The base-2 logarithm of the cost of scrypt: one more doubles time and memory. */
  readonly logN: number;
  /** The block size of scrypt. */
  readonly r: number;
  /** The parallelization of scrypt. */
  readonly p: number;
}

/**
 * OWASP's equivalent of its first recommendation that needs 32 MiB instead of 128 MiB per hash, so that a few
 * logins at once fit a small container. About 0.2 s on one core of the project's machines.
 */
export const DEFAULT_PASSWORD_COST: PasswordCost = { logN: 15, r: 8, p: 3 };

const SALT_BYTES = 16;
const DIGEST_BYTES = 32;
const FORM = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{22})\$([A-Za-z0-9+/]{43})$/;
/** A stored hash must not be able to demand more than this; beyond it the row was not written by us. */
const COST_MAX: PasswordCost = { logN: 20, r: 32, p: 16 };

/** Each running hash holds its memory and one of libuv's four threads, which files and name lookups need too. */
const RUNNING_MAX = 2;
let running = 0;
const waiting: (() => void)[] = [];

/** The password as `$scrypt$ln=15,r=8,p=3$<salt>$<digest>`: the parameters travel with the hash. */
export async function hashPassword(password: string, cost: PasswordCost = DEFAULT_PASSWORD_COST): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const digest = await derive(password, salt, cost);
  return `$scrypt$ln=${cost.logN},r=${cost.r},p=${cost.p}$${unpadded(salt)}$${unpadded(digest)}`;
}

/** True when the password is the one hashed. A malformed hash fails after the usual work. */
export async function verifyPassword(password: string, hash: string): Promise<boolean> {
  const stored = readHash(hash);
  if (stored === null) {
    await derive(password, Buffer.alloc(SALT_BYTES), DEFAULT_PASSWORD_COST);
    return false;
  }
  return timingSafeEqual(await derive(password, stored.salt, stored.cost), stored.digest);
}

/** True when the hash was made at another cost than wanted now: hash again while the password is at hand. */
export function needsRehash(hash: string, cost: PasswordCost = DEFAULT_PASSWORD_COST): boolean {
  const stored = readHash(hash);
  return stored === null || stored.cost.logN !== cost.logN || stored.cost.r !== cost.r || stored.cost.p !== cost.p;
}

/** A hash no password verifies against, as costly as any: what an unknown user's login is checked with. */
export function decoyHash(cost: PasswordCost = DEFAULT_PASSWORD_COST): string {
  return `$scrypt$ln=${cost.logN},r=${cost.r},p=${cost.p}$${unpadded(randomBytes(SALT_BYTES))}$${unpadded(randomBytes(DIGEST_BYTES))}`;
}

function readHash(hash: string): { cost: PasswordCost; salt: Buffer; digest: Buffer } | null {
  const parts = FORM.exec(hash);
  if (parts === null) return null;
  const cost = { logN: Number(parts[1]), r: Number(parts[2]), p: Number(parts[3]) };
  if (!isCost(cost)) return null;
  return { cost, salt: Buffer.from(parts[4] ?? '', 'base64'), digest: Buffer.from(parts[5] ?? '', 'base64') };
}

/** Integers within the bounds. */
export function isCost({ logN, r, p }: PasswordCost): boolean {
  const within = (value: number, max: number): boolean => Number.isInteger(value) && value >= 1 && value <= max;
  return within(logN, COST_MAX.logN) && within(r, COST_MAX.r) && within(p, COST_MAX.p);
}

async function derive(password: string, salt: Buffer, { logN, r, p }: PasswordCost): Promise<Buffer> {
  if (running >= RUNNING_MAX) await new Promise<void>((turn) => waiting.push(turn));
  else running += 1;
  try {
    const N = 2 ** logN;
    // OpenSSL needs 128 · r · (N + 2 + p) bytes. For small N the last two terms decide, so they are part of the bound.
    const options = { N, r, p, maxmem: 256 * r * (N + 2 + p) };
    return await new Promise((done, failed) => {
      scrypt(normalized(password), salt, DIGEST_BYTES, options, (error, key) => (error === null ? done(key) : failed(error)));
    });
  } finally {
    const next = waiting.shift();
    if (next === undefined) running -= 1;
    else next();
  }
}

/** The same password typed on two systems may arrive composed or decomposed. */
function normalized(password: string): string {
  return password.normalize('NFKC');
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}
