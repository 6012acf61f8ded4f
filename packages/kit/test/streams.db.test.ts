import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { accounts, changeStaff, createUser, deactivateUser } from '../src/contrib/accounts/index.ts';
import { accountsOf } from '../src/contrib/accounts/users/accounts.ts';
import { sessionCookieName } from '../src/contrib/accounts/sessions/cookie.ts';
import { insertNewSession, logOut } from '../src/contrib/accounts/sessions/sessions.ts';
import type { UserRow } from '../src/contrib/accounts/users/store.ts';
import { apiKeys, createApiKey, revokeApiKey, updateApiKey } from '../src/contrib/apikeys/index.ts';
import { job, JobController, jobs, startJob } from '../src/contrib/jobs/index.ts';
import { INPUT_LIMITS } from '../src/options/input-limits.ts';
import { describeDatabases } from '../src/testing/index.ts';
import { testApp, type TestApp } from '../src/testing/test-app.ts';

const waiting = job('waiting', { input: z.object({}), run: () => undefined });

interface OpenStream {
  readonly status: number;
  /** What was sent so far. */
  text: string;
  isOpen: boolean;
  readonly close: () => void;
}

describeDatabases('event streams', (database) => {
  let kit: TestApp;
  let address: string;
  let users = 0;
  const streams: OpenStream[] = [];
  beforeAll(async () => {
    kit = await testApp({
      database: database.db,
      modules: [accounts(), apiKeys(), jobs({ jobs: [waiting] })],
      mount: { '/v1': { '/jobs': JobController } },
    });
    address = await kit.listen();
  });
  afterEach(() => {
    vi.restoreAllMocks();
    for (const stream of streams.splice(0)) stream.close();
  });
  afterAll(() => kit.close());

  const person = (is_staff = false): Promise<UserRow> => createUser(database.db, { username: `watcher-${++users}`, is_staff });
  const jobOf = async (owner: string): Promise<string> =>
    (await database.db.transaction((tx) => startJob(tx, waiting, {}, { owner, delaySeconds: 3600 }))).id;
  const keyOf = async (user: UserRow, scopes = ['jobs:read']) => createApiKey(database.db, { user, name: 'watch', scopes });

  async function follow(id: string, headers: Record<string, string>): Promise<OpenStream> {
    const aborter = new AbortController();
    const response = await fetch(`${address}/v1/jobs/${id}/events`, { headers, signal: aborter.signal });
    const stream: OpenStream = { status: response.status, text: '', isOpen: true, close: () => aborter.abort() };
    streams.push(stream);
    void (async () => {
      try {
        for await (const chunk of response.body ?? []) stream.text += Buffer.from(chunk).toString();
      } catch {
        // Closed by the test.
      }
      stream.isOpen = false;
    })();
    await vi.waitUntil(() => stream.text.includes('event: progress') || stream.status !== 200, { timeout: 300_000 });
    return stream;
  }
  const ended = (stream: OpenStream): Promise<unknown> => vi.waitUntil(() => !stream.isOpen, { timeout: 300_000, interval: 20 });

  test('a revoked key, one whose scopes changed, a deactivated user and one who is no longer staff lose their streams; others keep theirs', async () => {
    const [ann, bob, cat, dan] = [await person(), await person(), await person(), await person(true)];
    const open = async (user: UserRow) => {
      const key = await keyOf(user);
      return { key, stream: await follow(await jobOf(user.id), { 'x-api-key': key.raw }) };
    };
    const [revoked, kept, narrowed, inactive, demoted] = [
      await open(ann),
      await open(ann),
      await open(ann),
      await open(bob),
      await open(dan),
    ];
    const bearer = await keyOf(cat);
    const other = await follow(await jobOf(cat.id), { authorization: `Bearer ${bearer.raw}` });
    const startedAt = performance.now();
    await revokeApiKey(database.db, revoked.key.apiKey.id);
    await ended(revoked.stream);
    // Within a second; the rest is for a busy machine.
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    expect(revoked.stream.text).toMatch(/event: error\ndata: .*"code":"invalid_credentials"/);
    await updateApiKey(database.db, narrowed.key.apiKey.id, { scopes: ['orders:read'] });
    await deactivateUser(database.db, bob.id);
    await changeStaff(database.db, dan.id, false);
    for (const { stream } of [narrowed, inactive, demoted]) await ended(stream);
    expect([kept.stream.isOpen, other.isOpen]).toEqual([true, true]);
    await revokeApiKey(database.db, bearer.apiKey.id);
    await ended(other);
  });

  test('a stream of a session ends with the session', async () => {
    const ann = await person();
    const { settings, clock } = accountsOf(database.db);
    const { token } = await database.db.transaction((tx) => insertNewSession(tx, ann, settings, clock, { secondFactor: false }));
    const cookie = `${sessionCookieName({ secure: settings.secureCookies })}=${token}`;
    const stream = await follow(await jobOf(ann.id), { cookie });
    expect(stream.status).toBe(200);
    await logOut(database.db, token);
    await ended(stream);
    expect(stream.text).toContain('event: error');
  });

  test('all streams together cost a few statements a second, not some each', async () => {
    const ann = await person();
    const [key, id] = [await keyOf(ann), await jobOf(ann.id)];
    for (let n = 0; n < 30; n++) await follow(id, { 'x-api-key': key.raw });
    const queries = vi.spyOn(database.db, 'query');
    const startedAt = performance.now();
    await new Promise((resolve) => setTimeout(resolve, 2000));
    const looks = Math.ceil((performance.now() - startedAt) / 250) + Math.ceil((performance.now() - startedAt) / 500);
    expect(queries.mock.calls.length).toBeGreaterThan(1);
    expect(queries.mock.calls.length).toBeLessThanOrEqual(looks + 2);
    queries.mockClear();
    for (const stream of streams.splice(0)) stream.close();
    await vi.waitUntil(() => queries.mock.calls.length === 0 || (queries.mockClear(), false), { timeout: 300_000, interval: 600 });
  });

  test(`a caller may have ${INPUT_LIMITS.streamsPerCaller} streams, and another one when one is closed`, async (context) => {
    context.skip(database.dialect !== 'sqlite', 'they are counted in the process, whatever its database');
    const [ann, bob] = [await person(), await person()];
    const [first, second, id] = [await keyOf(ann), await keyOf(ann), await jobOf(ann.id)];
    for (let n = 0; n < INPUT_LIMITS.streamsPerCaller; n++)
      expect((await follow(id, { 'x-api-key': n % 2 === 0 ? first.raw : second.raw })).status).toBe(200);
    const refused = await follow(id, { 'x-api-key': second.raw });
    await ended(refused);
    expect([refused.status, refused.text]).toEqual([429, expect.stringContaining('"code":"too_many_streams"')]);
    expect((await follow(await jobOf(bob.id), { 'x-api-key': (await keyOf(bob)).raw })).status).toBe(200);
    streams[0]?.close();
    await vi.waitUntil(async () => (await follow(id, { 'x-api-key': first.raw })).status === 200, { timeout: 300_000, interval: 50 });
  });
});
