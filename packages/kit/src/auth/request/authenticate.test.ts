import { describe, expect, test } from 'vitest';
import type { Db } from '../../db/engine/db.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { authenticate, challengesOf, invalidCredentials } from './authenticate.ts';
import type { Authenticator, AuthRequest } from './authenticator.ts';
import type { Principal } from '../people/principal.ts';

const request: AuthRequest = { method: 'GET', url: '/', headers: {}, clientAddress: '127.0.0.1', db: {} as Db };
const asked: string[] = [];

function principal(scheme: string): Principal {
  const user = { id: '1', username: 'ann', email: null, is_active: true, is_staff: false, is_superuser: false };
  return { user, scheme, scopes: null };
}

function answers(name: string, answer: () => Principal | null | Promise<Principal | null>): Authenticator {
  return {
    name,
    challenge: `${name} realm="api"`,
    securityScheme: {},
    authenticate() {
      asked.push(name);
      return answer();
    },
  };
}

const none = answers('none', () => null);
const noneLater = answers('none_later', async () => null);
const good = answers('good', () => principal('good'));
const goodLater = answers('good_later', async () => principal('good_later'));
const bad = answers('bad', () => {
  throw invalidCredentials('The key is bad.');
});
const badLater = answers('bad_later', async () => {
  throw coreErrors.invalid_credentials();
});
const broken = answers('broken', async () => {
  throw new Error('connection lost');
});

describe('several authenticators', () => {
  test('are asked in order and the first success wins', async () => {
    asked.length = 0;
    const found = await authenticate([none, noneLater, goodLater, good], request);
    expect(found?.principal.scheme).toBe('good_later');
    expect(found?.authenticator.name).toBe('good_later');
    expect(asked).toEqual(['none', 'none_later', 'good_later']);
  });

  test('no authenticator finds a credential: anonymous', async () => {
    expect(await authenticate([none, noneLater], request)).toBeNull();
    expect(await authenticate([], request)).toBeNull();
  });

  test('one that forgets to return, at once or later, found no user', async () => {
    const forgetful = answers('forgetful', () => undefined as unknown as null);
    const forgetfulLater = answers('forgetful_later', async () => undefined as unknown as null);
    expect(await authenticate([forgetful, forgetfulLater], request)).toBeNull();
    expect((await authenticate([forgetful, forgetfulLater, good], request))?.principal.scheme).toBe('good');
  });

  test('a bad credential beside a good one does not matter', async () => {
    for (const list of [
      [bad, good],
      [badLater, good],
      [bad, goodLater],
      [badLater, noneLater, goodLater],
    ]) {
      expect((await authenticate(list, request))?.principal.scheme).toMatch(/^good/);
    }
  });

  test('a bad credential and no good one is its 401, not "anonymous"', async () => {
    for (const list of [
      [bad, none],
      [none, bad],
      [badLater, none],
      [none, badLater, noneLater],
    ]) {
      await expect((async () => authenticate(list, request))()).rejects.toMatchObject({ status: 401, code: 'invalid_credentials' });
    }
  });

  test('a fault stops at once: it must not turn a caller into an anonymous one', async () => {
    await expect((async () => authenticate([broken, good], request))()).rejects.toThrow('connection lost');
  });

  test('no promise is made while no authenticator makes one', () => {
    expect(authenticate([none, good], request)).not.toBeInstanceOf(Promise);
  });
});

test('a 401 has one challenge per authenticator that has one, and that of a session where none has', () => {
  const { challenge: _, ...cookie } = good;
  expect(challengesOf([bad, cookie, none])).toBe('bad realm="api", none realm="api"');
  for (const without of [[cookie], []]) expect(challengesOf(without)).toBe('Session realm="api"');
});
