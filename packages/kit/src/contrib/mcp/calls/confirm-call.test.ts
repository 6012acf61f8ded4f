import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { Controller } from '../../../http/compile/controller.ts';
import { route } from '../../../http/declare/route.ts';
import { hasScopes } from '../../../permissions/built-ins.ts';
import { testApp, type TestApp } from '../../../testing/test-app.ts';
import { accounts } from '../../accounts/module.ts';
import { accountsOf } from '../../accounts/users/accounts.ts';
import { createUser } from '../../accounts/users/manage-users.ts';
import { apiKeys } from '../../apikeys/module.ts';
import { createApiKey } from '../../apikeys/manage/create.ts';
import { mcp } from '../module.ts';
import { confirmationToken, isConfirmed } from './confirmation.ts';

const permission = hasScopes({ allowUnscoped: true });
const params = z.object({ id: z.string() });
const Done = z.object({ done: z.string() });
let removed: string[] = [];

class ThingController extends Controller {
  remove = route.delete(
    '/:id',
    {
      summary: 'Delete a thing',
      permission,
      tool: true,
      params,
      query: z.object({ force: z.string().optional() }),
      status: 200,
      response: Done,
    },
    ({ params: { id } }) => {
      removed.push(id);
      return { done: id };
    },
  );
  pay = route.post(
    '/:id/pay',
    { summary: 'Pay a thing', permission, tool: { confirm: true }, params, response: Done },
    ({ params: { id } }) => {
      removed.push(`paid ${id}`);
      return { done: id };
    },
  );
  change = route.patch('/:id', { summary: 'Change a thing', permission, tool: true, params, response: Done }, ({ params: { id } }) => ({
    done: id,
  }));
}

let kit: TestApp;
let url: URL;
const keys: string[] = [];

beforeAll(async () => {
  kit = await testApp({
    tenant: ({ headers }) => (typeof headers['x-tenant'] === 'string' ? headers['x-tenant'] : null),
    modules: [accounts(), apiKeys(), mcp({ confirm: true })],
    mount: { '/v1': { '/things': ThingController } },
  });
  for (const username of ['ada', 'grace']) {
    const user = await createUser(kit.app.db, { username }, accountsOf(kit.app.db).management(null));
    keys.push((await createApiKey(kit.app.db, { user, name: 'agent', scopes: ['*'] })).raw);
  }
  url = new URL('/mcp', await kit.listen());
});
afterAll(() => kit.close());

type Action = 'accept' | 'decline' | 'cancel';
// oxlint-disable-next-line typescript/no-explicit-any -- results of tools
type Result = any;

async function agent(
  mode: 'legacy' | 'auto',
  key: string | undefined,
  decide?: (message: string) => { action: Action; confirm?: boolean },
  tenant = 'north',
) {
  const capabilities = decide === undefined ? {} : { elicitation: { form: {} } };
  const client = new Client({ name: 'agent', version: '1' }, { versionNegotiation: { mode }, capabilities });
  if (decide !== undefined)
    client.setRequestHandler('elicitation/create', ({ params: { message } }) => {
      const { action, confirm } = decide(message);
      return { action, ...(confirm === undefined ? {} : { content: { confirm } }) };
    });
  await client.connect(
    new StreamableHTTPClientTransport(url, { requestInit: { headers: { authorization: `Bearer ${key}`, 'x-tenant': tenant } } }),
  );
  return (name: string, args: Record<string, unknown>): Promise<Result> => client.callTool({ name, arguments: args });
}
const problem = ({ isError, content }: Result) => [isError, JSON.parse(content.at(-1).text)] as const;

test('a client that can ask its user asks before a destructive call, and only an accepted one is made', async () => {
  removed = [];
  const asked: string[] = [];
  let decision: { action: Action; confirm?: boolean } = { action: 'accept', confirm: true };
  const call = await agent('auto', keys[0], (message) => {
    asked.push(message);
    return decision;
  });
  expect((await call('thing_remove', { id: 'a' })).structuredContent).toEqual({ done: 'a' });
  for (decision of [{ action: 'decline' }, { action: 'cancel' }, { action: 'accept', confirm: false }, { action: 'accept' }] as const) {
    const [isError, { code }] = problem(await call('thing_remove', { id: 'b' }));
    expect([isError, code]).toEqual([true, 'not_confirmed']);
  }
  expect((await call('thing_change', { id: 'c' })).structuredContent).toEqual({ done: 'c' });
  expect(removed).toEqual(['a']);
  expect(asked).toEqual([`Delete a thing: {"id":"a"}`, ...Array<string>(4).fill(`Delete a thing: {"id":"b"}`)]);
});

test('what a person is asked has no character that hides another one, and is no longer than a person reads', async () => {
  const asked: string[] = [];
  const call = await agent('auto', keys[0], (message) => {
    asked.push(message);
    return { action: 'decline' };
  });
  await call('thing_remove', { id: 'a\u202Eb\u2028c\n', force: 'x'.repeat(9_000) });
  expect(asked[0]).toMatch(/^Delete a thing: \{"id":"a\\u202eb\\u2028c\\n","force":"x{3900,4000} … and \d{4} characters more$/);
});

test.each(['legacy', 'auto'] as const)('a %s client that cannot ask calls a second time with the token of the first call', async (mode) => {
  removed = [];
  const call = await agent(mode, keys[0]);
  for (const [tool, done] of [
    ['thing_remove', 'a'],
    ['thing_pay', 'paid a'],
  ] as const) {
    const [isError, first] = problem(await call(tool, { id: 'a' }));
    expect([isError, first.code, removed.includes(done)]).toEqual([true, 'confirmation_required', false]);
    const { confirmation_token } = first;
    // Other arguments, another tool, another caller or tenant, and a changed token are not confirmed.
    const other = await agent(mode, keys[1]);
    const elsewhere = await agent(mode, keys[0], undefined, 'south');
    for (const [by, name, args] of [
      [call, tool, { id: 'b', confirmation_token }],
      [call, tool === 'thing_pay' ? 'thing_remove' : 'thing_pay', { id: 'a', confirmation_token }],
      [other, tool, { id: 'a', confirmation_token }],
      [elsewhere, tool, { id: 'a', confirmation_token }],
      [call, tool, { id: 'a', confirmation_token: `z${confirmation_token}` }],
    ] as const)
      expect(problem(await by(name, args))[1].code).toBe('confirmation_required');
    expect(removed.includes(done)).toBe(false);
    expect((await call(tool, { confirmation_token, id: 'a' })).structuredContent).toEqual({ done: 'a' });
    expect(removed.at(-1)).toBe(done);
  }
});

test('a confirmation is for five minutes, and for arguments in any order', () => {
  const secret = Buffer.alloc(32, 1);
  const call = { tool: 'a', caller: ['b', null, 'north'], arguments: { x: 1, y: { z: [1, 2], w: null } } };
  const token = confirmationToken(call, secret, 1000);
  expect(isConfirmed(token, { ...call, arguments: { y: { w: null, z: [1, 2] }, x: 1 } }, secret, 300_000)).toBe(true);
  expect(isConfirmed(token, call, secret, 301_001)).toBe(false);
  expect(isConfirmed(token, { ...call, caller: ['b', null, 'south'] }, secret, 1000)).toBe(false);
  expect(isConfirmed(token, call, Buffer.alloc(32, 2), 1000)).toBe(false);
  expect(isConfirmed(token, { ...call, arguments: { x: 1, y: { z: [2, 1], w: null } } }, secret, 1000)).toBe(false);
  for (const each of [undefined, '', 'a.b', 7, token.slice(1)]) expect(isConfirmed(each, call, secret, 1000)).toBe(false);
});
