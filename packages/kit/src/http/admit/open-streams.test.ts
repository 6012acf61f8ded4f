import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createApp } from '../../app/assemble/create-app.ts';
import type { App } from '../../app/declare/module.ts';
import type { Authenticator } from '../../auth/request/authenticator.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { hasRole, isAuthenticated } from '../../permissions/built-ins.ts';
import { Controller } from '../compile/controller.ts';
import { jsonSchema } from '../declare/json-schema.ts';
import { route } from '../declare/route.ts';

const user = { username: 'x', email: null, is_active: true, is_staff: false, is_superuser: false };
const byHeader: Authenticator = {
  name: 'header',
  securityScheme: {},
  authenticate: ({ headers }) => ({ user: { ...user, id: String(headers['x-user']) }, scheme: 'header', scopes: null }),
};

const Any = jsonSchema<object>({});
async function* endless({ signal }: { readonly signal: AbortSignal }): AsyncGenerator<{ data: object }> {
  yield { data: {} };
  await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
}
class NewsController extends Controller {
  members = route.stream('/', { permission: hasRole('reader', 'writer'), response: Any, heartbeatMs: 20 }, endless);
  own = route.stream('/own', { permission: isAuthenticated, response: Any, heartbeatMs: 20 }, endless);
}

/** By user and tenant: the roles, an error that the application throws, or a promise that it waits for. */
const members = new Map<string, readonly string[] | Error | Promise<readonly string[]>>();
let questions: string[] = [];
let app: App;
let url = '';
beforeAll(async () => {
  app = createApp({
    database: 'sqlite::memory:',
    authenticators: [byHeader],
    tenant: ({ headers }) => headers['x-tenant']?.toString() ?? null,
    membership: async ({ user: { id }, tenant }) => {
      questions.push(`${id} ${tenant}`);
      const roles = await members.get(`${id} ${tenant}`);
      if (roles instanceof Error) throw roles;
      return roles === undefined ? null : { roles };
    },
    mount: { '/v1': { '/news': NewsController } },
    log: { level: 'silent' },
  });
  await app.listen({ port: 0 });
  url = `http://127.0.0.1:${(app.fastify.server.address() as AddressInfo).port}/v1/news`;
});
afterAll(() => app.close());
beforeEach(() => {
  for (const key of ['ann north', 'bob north', 'ann south']) members.set(key, ['reader']);
  questions = [];
});

/** A stream, and its text once it has ended. */
async function follow(id: string, tenant: string, path = ''): Promise<{ readonly ended: Promise<string>; readonly stop: () => void }> {
  const stop = new AbortController();
  const response = await fetch(url + path, { headers: { 'x-user': id, 'x-tenant': tenant }, signal: stop.signal });
  expect(response.status).toBe(200);
  return { ended: response.text().catch(() => 'stopped'), stop: () => stop.abort() };
}

describe('a stream ends when its caller', () => {
  test.each([
    ['is no longer a member', () => void members.delete('ann north'), 'not_a_member'],
    ['is refused by an error of the application', () => void members.set('ann north', coreErrors.not_found()), 'not_a_member'],
    ['has other roles', () => void members.set('ann north', ['reader', 'writer']), 'permission_denied'],
  ])('%s; those of other members and tenants go on', async (_name, change, code) => {
    const lost = await follow('ann', 'north');
    const others = [await follow('bob', 'north'), await follow('ann', 'south'), await follow('ann', 'north', '/own')];
    change();
    expect(await lost.ended).toMatch(new RegExp(`event: error\\ndata: .*"code":"${code}"`));
    const open = Symbol('open');
    for (const { ended, stop } of others) {
      expect(await Promise.race([ended, Promise.resolve(open)])).toBe(open);
      stop();
    }
  });
});

test('a database that does not respond ends nothing; the next look does', async () => {
  const stream = await follow('ann', 'north');
  members.set('ann north', new Error('the database is away'));
  const asked = questions.length;
  while (questions.length === asked) await new Promise((resolve) => setTimeout(resolve, 10));
  members.delete('ann north');
  expect(await stream.ended).toContain('not_a_member');
});

test.each([
  ['fails', () => new Error('the database of the tenant is away')],
  ['hangs', () => new Promise<readonly string[]>(() => undefined)],
])(
  'a membership that %s keeps only the streams of its own user open',
  async (_name, answer) => {
    const [kept, left] = [await follow('bob', 'north'), await follow('ann', 'north')];
    members.set('bob north', answer());
    members.delete('ann north');
    expect(await left.ended).toContain('not_a_member');
    const open = Symbol('open');
    expect(await Promise.race([kept.ended, Promise.resolve(open)])).toBe(open);
    kept.stop();
  },
  60_000,
);

test('users with several streams are asked about once per look, and the same roles in another order are the same', async () => {
  members.set('ann north', ['reader', 'writer']);
  const streams = [await follow('ann', 'north'), await follow('ann', 'north'), await follow('ann', 'north')];
  members.set('ann north', ['writer', 'reader']);
  questions = [];
  while (questions.length < 2) await new Promise((resolve) => setTimeout(resolve, 10));
  members.delete('ann north');
  const before = questions.length;
  for (const { ended } of streams) expect(await ended).toContain('not_a_member');
  // One look may have begun before.
  expect(questions.length - before).toBeLessThanOrEqual(2);
});
