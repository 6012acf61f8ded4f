import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import type { User } from '../../src/auth/index.ts';
import { accounts, createUser, deactivateUser } from '../../src/contrib/accounts/index.ts';
import { jwtBearer } from '../../src/contrib/jwt/index.ts';
import { Controller, jsonSchema, route } from '../../src/http/index.ts';
import { isAuthenticated, isStaff } from '../../src/permissions/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { fakeClock } from '../../src/testing/fake-clock.ts';
import { testApp, type TestApp } from '../../src/testing/test-app.ts';
import { type Claims, Provider } from './provider.ts';

const options = { response: jsonSchema<object>({}), heartbeatMs: 20 };
async function* follow({ signal }: { signal: AbortSignal }) {
  yield { data: {} };
  await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
}
class Follow extends Controller {
  own = route.stream('/own', { permission: isAuthenticated, ...options }, follow);
  desk = route.stream('/desk', { permission: isStaff, ...options }, follow);
}

describeDatabases('open streams of access tokens that are linked with staff', (database) => {
  const clock = fakeClock('2026-06-01T12:00:00Z');
  let provider: Provider;
  let kit: TestApp;
  let address: string;
  const closing: AbortController[] = [];
  beforeAll(async () => {
    provider = await new Provider().start();
    kit = await testApp({
      database: database.db,
      modules: [accounts({ passwordCost: { logN: 4, r: 8, p: 1 } })],
      authenticators: [jwtBearer([{ issuer: provider.url, audience: 'orders', provision: true, linkVerifiedEmail: true }])],
      mount: { '/v1': { '/follow': Follow } },
      clock,
    });
    address = await kit.listen();
  });
  afterEach(() => {
    for (const each of closing.splice(0)) each.abort();
  });
  afterAll(async () => {
    await kit.close();
    await provider.stop();
  });

  let people = 0;
  const staff = (): Promise<User> => {
    const username = `chief${(people += 1)}`;
    return createUser(database.db, { username, email: `${username}@example.com`, is_staff: true });
  };
  const open = async (path: 'own' | 'desk', { username, email }: User, claims: Claims) => {
    const aborter = new AbortController();
    closing.push(aborter);
    const token = await provider.token(clock.now(), { sub: username, email, email_verified: true, ...claims });
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`${address}/v1/follow/${path}`, { headers, signal: aborter.signal });
    const stream = { status: response.status, text: '', isOpen: true };
    void (async () => {
      try {
        for await (const chunk of response.body ?? []) stream.text += Buffer.from(chunk).toString();
      } catch {
        // Closed by the test.
      }
      stream.isOpen = false;
    })();
    return stream;
  };
  const ended = (stream: { readonly isOpen: boolean }) => vi.waitUntil(() => !stream.isOpen, { timeout: 60_000, interval: 20 });

  const setStaff = ({ id }: User, is: boolean) => database.db.query('update users set is_staff = $2 where id = $1', [id, is]);
  const looks = async () => {
    // A stream that was opened later and ends was looked up after all others.
    const user = await staff();
    const witness = await open('own', user, {});
    await deactivateUser(database.db, user.id);
    await ended(witness);
  };

  test('a token without a second factor opens none of staff, and its own goes on when its user becomes staff', async () => {
    const user = await staff();
    expect((await open('desk', user, {})).status).toBe(403);
    await setStaff(user, false);
    const own = await open('own', user, {});
    await setStaff(user, true);
    await looks();
    expect([own.status, own.isOpen]).toEqual([200, true]);
  });

  test('one with a second factor loses its streams when its user is no longer staff, is deactivated, or the token expires', async () => {
    const [demoted, inactive, late] = [await staff(), await staff(), await staff()];
    const streams = [];
    for (const user of [demoted, inactive]) streams.push(await open('desk', user, { amr: ['pwd', 'mfa'] }));
    const kept = await open('desk', late, { amr: ['mfa'] });
    expect([...streams, kept].map(({ status }) => status)).toEqual([200, 200, 200]);
    await looks();
    expect([...streams, kept].map(({ isOpen }) => isOpen)).toEqual([true, true, true]);
    await setStaff(demoted, false);
    await deactivateUser(database.db, inactive.id);
    for (const stream of streams) {
      await ended(stream);
      expect(stream.text).toMatch(/event: error\ndata: .*"code":"invalid_credentials"/);
    }
    expect(kept.isOpen).toBe(true);
    clock.advance(3_600_000);
    await ended(kept);
    expect(kept.text).toContain('"code":"invalid_credentials"');
  });
});
