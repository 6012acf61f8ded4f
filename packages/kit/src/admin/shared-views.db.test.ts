import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdminApp, type Browser } from '../../test/admin/admin-app.ts';
import { auditLog } from '../../test/audit-log.ts';
import { deleteUser } from '../contrib/accounts/index.ts';
import { apiKeys } from '../contrib/apikeys/index.ts';
import { describeDatabases } from '../testing/databases.ts';
import type { AdminRole } from './options.ts';

interface View {
  readonly id: string;
  readonly name: string;
  readonly shared_with: AdminRole | null;
  readonly own: boolean;
}

describeDatabases('views that are shared with a role', (database) => {
  const roles = new Map<string, AdminRole>();
  let site: AdminApp;
  const needs = { 'audit-log': { read: 'operator' }, users: { share: 'administrator' } } as const;
  const list = 'lists/api-keys/filters';

  beforeAll(async () => {
    const adminRoles = { of: (user: { readonly id: string }) => roles.get(user.id) ?? 'read_only', needs };
    site = await new AdminApp(database.db, [apiKeys()], {}, { roles: adminRoles }).ready();
  });
  afterAll(() => site.close());

  const as = async (role: AdminRole): Promise<Browser> => {
    const browser = await site.browser();
    roles.set(browser.userId, role);
    return browser;
  };
  const share = (browser: Browser, name: string, shared_with: AdminRole | null, path = list) =>
    site.send(browser, 'POST', path, { name, query: 'search=ci&columns=name,owner_id', shared_with });
  const views = async (browser: Browser) => (await site.get(browser, list)).body.items as View[];
  const names = async (browser: Browser) => (await views(browser)).map(({ name }) => name);

  test('are seen by everybody with the role or a higher one, in that list, as long as they have it', async () => {
    const [owner, reader, operator, administrator] = await Promise.all(
      (['operator', 'read_only', 'operator', 'administrator'] as const).map(as),
    );
    for (const [name, role] of [
      ['own', null],
      ['for all', 'read_only'],
      ['for operators', 'operator'],
      ['for administrators', 'administrator'],
    ] as const)
      expect((await share(owner as Browser, name, role)).status).toBe(201);
    expect(await names(reader as Browser)).toEqual(['for all']);
    expect(await names(operator as Browser)).toEqual(['for all', 'for operators']);
    expect(await names(administrator as Browser)).toEqual(['for administrators', 'for all', 'for operators']);
    expect(await names(owner as Browser)).toHaveLength(4);
    expect((await views(operator as Browser)).map(({ own }) => own)).toEqual([false, false]);
    expect((await site.get(administrator as Browser, 'lists/users/filters')).body.items).toEqual([]);
    // The role is asked at every look.
    roles.set((operator as Browser).userId, 'read_only');
    expect(await names(operator as Browser)).toEqual(['for all']);
  });

  test('are shared by operators, unless the settings of the list say else; others keep theirs for themselves', async () => {
    const [reader, operator] = [await as('read_only'), await as('operator')];
    expect((await share(reader, 'mine', 'read_only')).body).toMatchObject({ code: 'role_required' });
    expect((await share(reader, 'mine', null)).status).toBe(201);
    const onUsers = { name: 'users', query: '', shared_with: 'read_only' };
    expect((await site.send(operator, 'POST', 'lists/users/filters', onUsers)).body).toMatchObject({ code: 'role_required' });
    expect((await site.get(reader, list)).body).toMatchObject({ shares: false, manages: false });
    expect((await site.get(operator, list)).body).toMatchObject({ shares: true, manages: false });
    expect((await share(operator, 'wrong', 'superuser' as never)).status).toBe(422);
  });

  test('hold columns of the list only', async () => {
    const operator = await as('operator');
    const save = (query: string) => site.send(operator, 'POST', list, { name: 'columns', query });
    expect((await save('columns=name,secret_digest')).body).toMatchObject({
      code: 'validation_error',
      errors: [{ location: ['query', 'columns'] }],
    });
    expect((await save('columns=name')).body).toMatchObject({ query: 'columns=name', own: true, shared_with: null });
  });

  test('are recorded when they are shared, changed and withdrawn; what was never shared is not', async () => {
    const operator = await as('operator');
    const { id } = (await share(operator, 'recorded', null)).body as View;
    await share(operator, 'recorded', 'operator');
    await share(operator, 'recorded', null);
    await share(operator, 'recorded', 'read_only');
    expect((await site.send(operator, 'DELETE', `${list}/${id}`)).status).toBe(204);
    const entries = await auditLog(database.db, { target_id: id });
    expect(entries.map(({ action }) => action).toSorted()).toEqual([
      'saved_view.shared',
      'saved_view.shared',
      'saved_view.withdrawn',
      'saved_view.withdrawn',
    ]);
    expect(entries.every(({ actor_id }) => actor_id === operator.userId)).toBe(true);
  });

  test('are deleted by their owner or an administrator; what is not shared is only its owner’s', async () => {
    const [owner, operator, administrator] = [await as('operator'), await as('operator'), await as('administrator')];
    const shared = (await share(owner, 'shared', 'read_only')).body as View;
    const own = (await share(owner, 'not shared', null)).body as View;
    const drop = async (browser: Browser, { id }: View) => (await site.send(browser, 'DELETE', `${list}/${id}`)).status;
    expect(await drop(operator, shared)).toBe(404);
    expect(await drop(administrator, own)).toBe(404);
    expect(await drop(administrator, shared)).toBe(204);
    expect(await drop(owner, own)).toBe(204);
  });

  test('go with the user who shared them', async () => {
    const [owner, reader] = [await as('operator'), await as('read_only')];
    await share(owner, 'of a leaver', 'read_only');
    expect(await names(reader)).toContain('of a leaver');
    await deleteUser(database.db, owner.userId);
    expect(await names(reader)).not.toContain('of a leaver');
  });
});
