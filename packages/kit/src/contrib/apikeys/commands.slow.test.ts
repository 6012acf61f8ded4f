import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { auditLog } from '../../../test/audit-log.ts';
import { KitProgram, sourceOf, type KitRun } from '../../../test/cli/kit-program.ts';
import { openDatabase } from '../../db/open/open-database.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { accountsDirectory } from '../accounts/users/user-directory.ts';
import { useApiKeys } from './request/use-api-keys.ts';
import { verifyApiKey } from './verify/verify.ts';

describeDatabases('kit apikey', (database) => {
  let folder = '';
  let program: KitProgram;
  const run = (...args: string[]) => program.run(args);
  const lastLine = ({ stdout }: KitRun) => stdout.trimEnd().split('\n').at(-1) ?? '';

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'kit-apikey-'));
    program = new KitProgram(folder);
    await writeFile(
      join(folder, 'kit.config.ts'),
      `import { createApp } from ${sourceOf('index.ts')};
import { accounts } from ${sourceOf('contrib/accounts/index.ts')};
import { apiKeys } from ${sourceOf('contrib/apikeys/index.ts')};
import { audit } from ${sourceOf('contrib/audit/index.ts')};
export default createApp({ database: ${JSON.stringify(database.url)}, modules: [accounts(), apiKeys(), audit()], mount: {} });
`,
    );
    expect(await run('migrate')).toMatchObject({ code: 0 });
    expect(await run('user', 'create', 'ada', '--email', 'ada@example.com', '--no-password')).toMatchObject({ code: 0 });
  }, 600_000);
  afterAll(async () => {
    await program.close();
    await rm(folder, { recursive: true, force: true });
  });

  test('create, list, rotate and revoke a key; the raw key is alone on the last line and works', async () => {
    const db = await openDatabase(database.url);
    const keys = await useApiKeys(db, { users: accountsDirectory });
    const works = async (raw: string) => (await verifyApiKey(db, raw)) !== null;
    const scopes = ['--scope', 'orders:read', '--scope', 'orders:write'];
    const created = await run('apikey', 'create', '--user', 'ada', '--name', 'CI', ...scopes, '--days', '30', '--rate', '1000/hour');
    expect([created.code, created.stderr]).toEqual([0, '']);
    const raw = lastLine(created);
    expect(raw).toMatch(/^kit_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}$/);
    const verified = await verifyApiKey(db, raw);
    expect(verified?.apiKey).toMatchObject({ name: 'CI', scopes: ['orders:read', 'orders:write'], rate_limit: '1000/hour' });
    expect(verified?.apiKey.expires_at?.getTime()).toBeGreaterThan(Date.now() + 29 * 86_400_000);
    const { prefix = '' } = verified?.apiKey ?? {};

    const listed = await program.spawn(['list', '--user', 'ada@example.com', '--state', 'active'], { bin: 'kit_apikey' });
    expect([listed.code, listed.stdout.split('\n').length]).toEqual([0, 2]);
    expect(listed.stdout).toMatch(new RegExp(`^${prefix}  active  orders:read,orders:write  1000/hour`));

    const rotated = await run('apikey', 'rotate', '--prefix', prefix, '--grace', '3600', '--days', '7', '--rate', 'none', '--scope', 'a:b');
    expect(rotated.code).toBe(0);
    expect([await works(raw), await works(lastLine(rotated))]).toEqual([true, true]);
    expect((await verifyApiKey(db, lastLine(rotated)))?.apiKey).toMatchObject({ scopes: ['a:b'], rate_limit: null });
    const json = await run('--json', 'apikey', 'rotate', '--prefix', prefix);
    const record = JSON.parse(json.stdout) as { key: string; prefix: string; state: string };
    expect(record).toMatchObject({ prefix, state: 'active', scopes: ['a:b'] });
    expect([await works(lastLine(rotated)), await works(record.key)]).toEqual([false, true]);

    await db.query('update api_keys set expires_at = $1 where prefix = $2', [new Date('2020-01-01T00:00:00.000Z'), prefix]);
    const late = await run('--json', 'apikey', 'rotate', '--prefix', prefix);
    expect(JSON.parse(late.stdout)).toMatchObject({ prefix, state: 'expired' });
    const later = await run('apikey', 'rotate', '--prefix', prefix);
    expect(later.stdout).toContain('rotated, but expired since 2020-01-01T00:00:00.000Z');

    const revoked = await run('apikey', 'revoke', '--prefix', prefix, '--reason', 'leaked');
    expect([revoked.code, revoked.stdout]).toEqual([0, `Key ${prefix} revoked.\n`]);
    expect(await works(record.key)).toBe(false);
    expect((await run('apikey', 'list', '--state', 'revoked')).stdout).toContain('revoked (leaked)');
    const refused = await run('apikey', 'rotate', '--prefix', prefix);
    expect([refused.code, refused.stdout, refused.stderr]).toEqual([1, '', expect.stringContaining('The API key is revoked.')]);
    const entries = await auditLog(db);
    expect(
      entries.filter(({ action }) => action.startsWith('api_key.')).map(({ actor_name, action }) => `${actor_name} ${action}`),
    ).toEqual([
      'kit apikey api_key.created',
      ...Array.from({ length: 4 }, () => 'kit apikey api_key.rotated'),
      'kit apikey api_key.revoked',
    ]);
    await keys.stop();
    await db.close();
  }, 600_000);

  test('audit verify and prune', async () => {
    const verified = await run('audit', 'verify');
    expect(verified.code).toBe(0);
    const anchor = /\d+:[0-9a-f]{64}/.exec(verified.stdout)?.[0] ?? '';
    expect((await run('audit', 'verify', '--anchor', anchor)).code).toBe(0);
    expect((await run('audit', 'prune', '--days', '30')).stdout).toMatch(/^0 entries/);
    for (const days of ['x', '0', '999999'])
      expect(await run('audit', 'prune', '--days', days)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining(`--days is "${days}"; use an integer from 1 to 36500.`),
      });
    await database.db.query("update audit_entries set action = 'forged' where seq = 1");
    const broken = await run('audit', 'verify');
    expect([broken.code, broken.stderr]).toEqual([1, expect.stringContaining('The content of entry 1 was changed.')]);
    await database.db.query('update audit_entries set at = $1 where seq = 1', [new Date('2020-01-01T00:00:00.000Z')]);
    const refused = await run('audit', 'prune', '--days', '30');
    expect([refused.code, refused.stdout, refused.stderr]).toEqual([1, '', expect.stringContaining('The content of entry 1 was changed.')]);
    expect((await run('audit', 'prune', '--days', '30', '--force')).stdout).toMatch(/^1 entries/);
    expect((await run('audit', 'verify')).code).toBe(0);
  }, 600_000);

  // Wrong words are found before the database matters: once is enough.
  if (database.dialect === 'postgres') return;

  test.each([
    [['create', '--user', 'nobody', '--name', 'x'], /There is no user "nobody"/],
    [
      ['create', '--user', 'nobody', '--name', ' ', '--rate', '5/fortnight', '--scope', 'X', '--days', 'ten'],
      /no user "nobody".*--days is "ten".*name is 1 to 100.*scope is.*fortnight/s,
    ],
    [['create', '--user', 'ada', '--name', 'x', '--days', 'ten'], /--days is "ten"/],
    [['rotate', '--prefix', 'nosuchprefix'], /no key with this prefix/],
    [['revoke', '--prefix', 'nosuchprefix'], /no key with this prefix/],
    [['list', '--state', 'lost'], /no state "lost"/],
  ])('%j says what is wrong and exits 1', async (args, message) => {
    const { code, stdout, stderr } = await run('apikey', ...args);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(message);
  });
});
