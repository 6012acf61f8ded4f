import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { AdminApp, type Browser } from '../../../../test/admin/admin-app.ts';
import { auditLog } from '../../../../test/audit-log.ts';
import { createApp } from '../../../app/assemble/create-app.ts';
import { describeDatabases } from '../../../testing/databases.ts';
import { jobs, runDueJobs } from '../../jobs/index.ts';
import { accounts } from '../module.ts';
import { folderMail } from '../mail/folder-mail.ts';
import { storedMailFaults } from '../mail/mail.ts';

const TOKEN = /#(?:reset|invitation|email)=[\w-]{20,}/;

describeDatabases('mails in the admin site', (database) => {
  const folder = mkdtempSync(join(tmpdir(), 'kit-mails-'));
  const mail = { ...folderMail({ folder }), linkUrl: 'http://127.0.0.1/admin/' };
  const roles = {
    of: ({ username }: { username: string }) =>
      username === 'reader' ? ('read_only' as const) : username === 'hand' ? ('operator' as const) : ('administrator' as const),
  };
  let site: AdminApp;
  let people: Record<'reader' | 'hand' | 'boss' | 'root', Browser>;
  beforeAll(async () => {
    site = await new AdminApp(database.db, [jobs()], {}, { roles }, { mail, signUp: 'invitation' }).ready();
    people = {
      reader: await site.browser({ username: 'reader', is_staff: true }),
      hand: await site.browser({ username: 'hand', is_staff: true }),
      boss: await site.browser({ username: 'boss', is_staff: true }),
      root: await site.browser({ username: 'root', email: 'root@example.com', is_staff: true, is_superuser: true }),
    };
  });
  afterAll(async () => {
    await site.close();
    rmSync(folder, { recursive: true });
  });

  /** The id of the newest mail after a password link was asked for. */
  const resetMailOf = async (login: string): Promise<string> => {
    await site.call('POST', 'api/account/reset', {}, { login });
    await runDueJobs(database.db);
    return (await mail.sent?.list(1))?.[0]?.id ?? '';
  };
  const show = (browser: Browser, id: string) => site.send(browser, 'POST', 'resources/mails/actions/show-link', { ids: [id], fields: {} });

  test('hide the tokens of their links from every role, in the list and in the record', async () => {
    await site.newUser({ username: 'ann', email: 'ann@example.com' });
    const id = await resetMailOf('ann');
    for (const browser of Object.values(people)) {
      const record = await site.get(browser, `resources/mails/${id}`);
      expect(record.status).toBe(200);
      expect(record.text).toContain('#reset=(hidden)');
      expect(record.text).not.toMatch(TOKEN);
      expect((await site.get(browser, 'resources/mails')).text).not.toMatch(TOKEN);
    }
  });

  test('hide them also where the application wrote the mail: in the subject, and in a link inside of another one', async () => {
    const link = `http://127.0.0.1/admin/#reset=${'a'.repeat(43)}`;
    const text = `https://t.example.com/?u=${encodeURIComponent(link)}`;
    await mail.send({ to: 'ann@example.com', subject: `Set it: ${link}`, text }, { signal: AbortSignal.timeout(60_000) });
    const id = (await mail.sent?.list(1))?.[0]?.id ?? '';
    for (const path of ['resources/mails', `resources/mails/${id}`]) {
      const shown = await site.get(people.boss, path);
      expect(shown.text).toContain('#reset=(hidden)');
      expect(shown.text).not.toContain('aaaa');
    }
  });

  test('show a link to an administrator who asks, with an audit entry, and to no role below', async () => {
    const user = await site.newUser({ username: 'bea', email: 'bea@example.com' });
    const id = await resetMailOf('bea');
    for (const browser of [people.reader, people.hand]) {
      const refused = await show(browser, id);
      expect(refused).toMatchObject({ status: 403, body: { code: 'role_required' } });
      expect(refused.text).not.toMatch(TOKEN);
    }
    const shown = await show(people.boss, id);
    expect(shown.status).toBe(200);
    expect(shown.body.secret.value).toMatch(TOKEN);
    const entry = (await auditLog(database.db)).findLast(({ action }) => action === 'user.mail_link_shown');
    expect(entry).toMatchObject({ target_type: 'user', target_id: user.id });
    expect(inspect(entry)).not.toMatch(TOKEN);
  });

  test('show the link of a superuser to superusers only', async () => {
    const id = await resetMailOf('root');
    const refused = await show(people.boss, id);
    expect(refused).toMatchObject({ status: 403, body: { code: 'superuser_only' } });
    expect(refused.text).not.toMatch(TOKEN);
    expect((await show(people.root, id)).body.secret.value).toMatch(TOKEN);
  });
});

describe('in production', () => {
  test('an app that stores mails in a folder does not start', async () => {
    vi.stubEnv('NODE_ENV', 'production');
    try {
      const stored = { ...folderMail({ folder: tmpdir() }), linkUrl: 'https://shop.example.com/account' };
      const app = createApp({ database: 'sqlite::memory:', modules: [jobs(), accounts({ mail: stored })], mount: {} });
      await expect(app.ready()).rejects.toThrow('stores mails in a folder instead of sending them');
      const sending = { send: async () => undefined, linkUrl: 'https://shop.example.com/account' };
      expect(storedMailFaults(sending)).toEqual([]);
    } finally {
      vi.unstubAllEnvs();
    }
  });
});
