import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { type App, createApp } from '../src/app/index.ts';
import type { Authenticator, User } from '../src/auth/index.ts';
import { Controller, jsonSchema, route } from '../src/http/index.ts';
import { isAuthenticated } from '../src/permissions/index.ts';

const person = (id: string): User => ({ id, username: id, email: null, is_active: true, is_staff: false, is_superuser: false });

class FollowController extends Controller {
  follow = route.stream(
    '/',
    { permission: isAuthenticated, response: jsonSchema<object>({}), heartbeatMs: 20 },
    async function* ({ signal, caller }) {
      yield { data: { tenant: (await caller()).tenant } };
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
    },
  );
}

/** What an outside service says about each token: throws where it cannot be asked. */
const service = new Map<string, () => User | null | Promise<User | null>>();
const tenants = new Map<string, string>();

/** Authenticates with the tokens of one service; `hasIds` with credentials that are known apart. */
const tokens = (name: string, hasIds: boolean): Authenticator => ({
  name,
  securityScheme: { type: 'apiKey', in: 'header', name },
  async authenticate({ headers }) {
    const token = headers[name];
    if (typeof token !== 'string') return null;
    const user = (await service.get(token)?.()) ?? null;
    return user === null ? null : { user, scheme: name, scopes: null, ...(hasIds ? { credentialId: token } : {}) };
  },
});

interface OpenStream {
  text: string;
  isOpen: boolean;
}

describe('the callers of open streams', () => {
  let app: App;
  let url = '';
  let release: () => void = () => undefined;
  let asked = 0;
  const closing = new AbortController();
  beforeAll(async () => {
    app = createApp({
      database: 'sqlite::memory:',
      authenticators: [tokens('x-first', false), tokens('x-second', true)],
      tenant: async ({ user }) => {
        const found = tenants.get(user?.id ?? '');
        if (found === 'unreachable') throw new Error('the directory of tenants is down');
        if (found === 'silent')
          await new Promise<void>((resolve) => {
            asked++;
            release = resolve;
          });
        return found ?? null;
      },
      mount: { '/follow': { '/': FollowController } },
      log: { level: 'silent' },
    });
    url = await app.listen({ port: 0 });
  });
  afterEach(() => {
    release();
    service.clear();
    tenants.clear();
    asked = 0;
  });
  afterAll(async () => {
    closing.abort();
    await app.close();
  });

  async function open(header: string, token: string): Promise<OpenStream> {
    service.set(token, () => person(token));
    const response = await fetch(`${url}/follow`, { headers: { [header]: token }, signal: closing.signal });
    expect(response.status).toBe(200);
    const stream = { text: '', isOpen: true };
    void (async () => {
      try {
        for await (const chunk of response.body ?? []) stream.text += Buffer.from(chunk).toString();
      } catch {
        // Closed by the test.
      }
      stream.isOpen = false;
    })();
    await vi.waitUntil(() => stream.text.includes('data:'), { timeout: 30_000 });
    return stream;
  }
  const ended = (stream: OpenStream): Promise<unknown> => vi.waitUntil(() => !stream.isOpen, { timeout: 30_000, interval: 20 });
  const down = () => {
    throw new Error('the service is down');
  };

  test.each([
    ['fails', down],
    ['hangs', () => new Promise<null>((resolve) => (release = () => resolve(null)))],
  ])('are looked up though the authenticator of others %s', async (_what, answer) => {
    const [kept, revoked] = [await open('x-first', 'kept'), await open('x-second', 'revoked')];
    service.set('kept', answer);
    service.set('revoked', () => null);
    await ended(revoked);
    expect(revoked.text).toContain('"code":"invalid_credentials"');
    expect(kept.isOpen).toBe(true);
  });

  test.each(['x-first', 'x-second'])('are looked up though another caller of the same authenticator cannot be (%s)', async (header) => {
    const [kept, revoked] = [await open(header, 'a-kept'), await open(header, 'b-revoked')];
    service.set('a-kept', down);
    service.set('b-revoked', () => null);
    await ended(revoked);
    expect(kept.isOpen).toBe(true);
  });

  test('are looked up twice a second: a revoked one loses the stream within a second', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      const stream = await open('x-second', 'late');
      service.set('late', () => null);
      vi.advanceTimersByTime(1000);
      await ended(stream);
      expect(stream.text).toContain('invalid_credentials');
    } finally {
      vi.useRealTimers();
    }
  });

  test('lose their streams when they are in another tenant; those whose tenant cannot be found keep theirs', async () => {
    for (const name of ['moved', 'left', 'stayed', 'lost']) tenants.set(name, 'north');
    const [moved, left, joined] = [await open('x-first', 'moved'), await open('x-second', 'left'), await open('x-second', 'joined')];
    const [stayed, lost] = [await open('x-first', 'stayed'), await open('x-second', 'lost')];
    expect(joined.text).toContain('{"tenant":null}');
    tenants.set('moved', 'south').set('joined', 'north').set('lost', 'unreachable').delete('left');
    for (const stream of [moved, left, joined]) {
      await ended(stream);
      expect(stream.text).toMatch(/event: error\ndata: .*"code":"permission_denied"/);
    }
    expect([stayed.isOpen, lost.isOpen]).toEqual([true, true]);
  });

  test.each(['x-first', 'x-second'])('are looked up though the tenant of another is never found (%s)', async (header) => {
    tenants.set('a-waits', 'north');
    const [waits, revoked] = [await open(header, 'a-waits'), await open(header, 'b-revoked')];
    tenants.set('a-waits', 'silent');
    await vi.waitUntil(() => asked > 0, { timeout: 30_000, interval: 20 });
    service.set('b-revoked', () => null);
    await ended(revoked);
    expect(waits.isOpen).toBe(true);
  });
});
