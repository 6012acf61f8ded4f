import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { auditLog } from '../../../test/audit-log.ts';
import { KitProgram, sourceOf } from '../../../test/cli/kit-program.ts';
import { unzip } from '../../../test/personal/unzip.ts';
import { describeDatabases } from '../../testing/databases.ts';

describeDatabases('kit tenant and kit apikey bind', (database) => {
  let folder = '';
  let program: KitProgram;
  const run = (...args: string[]) => program.run(args);
  /** The output of a command that must succeed. */
  const kit = async (...args: string[]) => {
    const ran = await run(...args);
    expect([args, ran.code, ran.stderr]).toEqual([args, 0, '']);
    return ran.stdout;
  };
  /** What a command that must fail says; it prints nothing else. */
  const refused = async (...args: string[]) => {
    const ran = await run(...args);
    expect([args, ran.code === 0, ran.stdout]).toEqual([args, false, '']);
    expect(ran.stderr).not.toMatch(/\n\s+at /);
    return ran.stderr;
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'kit-tenant-'));
    program = new KitProgram(folder);
    await writeFile(
      join(folder, 'kit.config.ts'),
      `import { createApp } from ${sourceOf('index.ts')};
import { accounts } from ${sourceOf('contrib/accounts/index.ts')};
import { apiKeys } from ${sourceOf('contrib/apikeys/index.ts')};
import { audit } from ${sourceOf('contrib/audit/index.ts')};
import { tenants } from ${sourceOf('contrib/tenants/index.ts')};
export default createApp({
  database: ${JSON.stringify(database.url)},
  modules: [accounts(), apiKeys(), audit(), tenants({ seatsMax: 3 })],
  mount: {},
});
`,
    );
    expect((await run('migrate')).code).toBe(0);
    for (const name of ['ada', 'bob', 'eve', 'zoe', 'kim'])
      await kit('user', 'create', name, '--email', `${name}@example.com`, '--no-password');
    await kit('tenant', 'create', 'North', '--owner', 'ada');
    await kit('tenant', 'create', 'South', '--owner', 'eve');
  }, 600_000);
  afterAll(async () => {
    await program.close();
    await rm(folder, { recursive: true, force: true });
  });

  test('create: an owner who exists, and a slug that is free', async () => {
    expect(await refused('tenant', 'create', 'West')).toContain("required option '--owner <user>' not specified");
    expect(await refused('tenant', 'create', 'West', '--owner', 'nobody')).toContain('There is no user "nobody".');
    expect(await refused('tenant', 'create', '', '--owner', 'ada')).toContain('A name has 1 to 150 characters.');
    expect(await refused('tenant', 'create', 'West', '--owner', 'ada', '--slug', 'Not a slug')).toContain('Use lowercase letters');
    expect(await refused('tenant', 'create', 'West', '--owner', 'ada', '--slug', 'north')).toContain('Another tenant has this slug.');
    expect(await kit('tenant', 'list')).not.toMatch(/west/i);
  });

  test('members: of a tenant that exists, with roles that it has, as far as there are seats', async () => {
    for (const args of [['members'], ['suspend'], ['resume'], ['delete'], ['restore'], ['release']])
      expect(await refused('tenant', ...args, 'nowhere')).toContain('There is no tenant "nowhere".');
    expect(await refused('tenant', 'add', 'north', 'bob')).toContain("required option '--role <role...>' not specified");
    expect(await refused('tenant', 'add', 'north', 'bob', '--role', 'king')).toContain('Choose one or more of owner, admin, member.');
    expect(await refused('tenant', 'add', 'north', 'nobody', '--role', 'member')).toContain('There is no user "nobody".');
    expect(await refused('tenant', 'change', 'north', 'bob', '--role', 'admin')).toContain('There is no such member.');
    expect(await refused('tenant', 'remove', 'north', 'bob')).toContain('There is no such member.');
    expect(await refused('tenant', 'remove', 'north', 'ada')).toContain('this is the last one');
    expect(await kit('tenant', 'add', 'north', 'bob', '--role', 'member')).toBe('bob is a member of north: member.\n');
    expect(await refused('tenant', 'add', 'north', 'bob', '--role', 'admin')).toContain('The user is a member already.');
    await kit('tenant', 'add', 'north', 'zoe', '--role', 'member', 'admin');
    expect(await refused('tenant', 'add', 'north', 'kim', '--role', 'member')).toContain('3 seats');
    expect(await kit('tenant', 'remove', 'north', 'zoe')).toBe('zoe is no longer a member of north.\n');
  });

  test('suspend and resume, also twice', async () => {
    expect(await kit('tenant', 'suspend', 'north', '--reason', 'not paid')).toContain('is suspended');
    await kit('tenant', 'suspend', 'north', '--reason', 'not paid');
    await kit('tenant', 'resume', 'north');
    expect(await kit('tenant', 'resume', 'north')).toBe('Tenant north is active.\n');
    const actions = (await auditLog(database.db)).map(({ action }) => action).filter((action) => /suspended|resumed/.test(action));
    expect(actions).toEqual(['tenant.suspended', 'tenant.resumed']);
  });

  test('export: a file of its own, whole or none', async () => {
    const file = join(folder, 'north.zip');
    expect(await refused('tenant', 'export', 'north')).toContain("required option '--to <file>' not specified");
    expect(await refused('tenant', 'export', 'nowhere', '--to', file)).toContain('There is no tenant "nowhere".');
    expect(await refused('tenant', 'export', 'north', '--to', join(folder, 'none/north.zip'))).toContain(
      'none/north.zip cannot be written: its folder does not exist.',
    );
    await mkdir(join(folder, 'taken'));
    expect(await refused('tenant', 'export', 'north', '--to', join(folder, 'taken'))).toContain('taken cannot be written: it is a folder.');
    expect((await readdir(folder)).filter((name) => /zip|part/.test(name))).toEqual([]);
    expect(await run('tenant', 'export', 'north', '--to', file)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^\d+ rows of north are in /) as string,
      stderr: expect.stringMatching(/^Tables: (\d+) to do\nTables: \1 done\n$/) as string,
    });
    const files = unzip(await readFile(file));
    const { tables } = JSON.parse(files.get('manifest.json') ?? '') as { tables: { table: string; rows: number }[] };
    expect(tables.find(({ table }) => table === 'tenant_members')?.rows).toBeGreaterThan(0);
    expect(await readdir(folder)).not.toContain('north.zip.part');
    expect((await auditLog(database.db)).map(({ action }) => action)).toContain('tenant.exported');
  });

  test('a legal hold keeps a tenant after its grace, until it is released', async () => {
    await kit('tenant', 'create', 'East', '--owner', 'ada');
    expect(await refused('tenant', 'hold', 'east')).toContain("required option '--reason <text>' not specified");
    expect(await refused('tenant', 'hold', 'nowhere', '--reason', 'x')).toContain('There is no tenant "nowhere".');
    expect(await refused('tenant', 'release', 'east')).toContain('The tenant east has no legal hold.');
    expect(await kit('tenant', 'hold', 'east', '--reason', 'a lawsuit')).toBe('The rows of east stay as they are.\n');
    await kit('tenant', 'hold', 'east', '--reason', 'another lawsuit');
    await kit('tenant', 'delete', 'east');
    await database.db.query("update tenants set deletes_at = $1 where slug = 'east'", [new Date('2020-01-01T00:00:00.000Z')]);
    expect(await kit('tenant', 'purge')).toBe('0 tenants deleted.\n');
    expect(await kit('tenant', 'list')).toContain('east  East  deleting');
    expect(await kit('tenant', 'release', 'east')).toBe('The legal hold of east has ended.\n');
    expect(await kit('tenant', 'purge')).toBe('1 tenants deleted.\n');
    expect(await kit('tenant', 'list')).not.toContain('east');
    expect(await refused('tenant', 'restore', 'east')).toContain('There is no tenant "east".');
  });

  test('bind: a key from before there were tenants, to a tenant of its owner, once', async () => {
    const created = JSON.parse(await kit('--json', 'apikey', 'create', '--user', 'bob', '--name', 'old', '--tenant', 'north')) as {
      prefix: string;
    };
    const { prefix } = created;
    await database.db.query('update api_keys set tenant_id = null where prefix = $1', [prefix]);
    expect(await refused('apikey', 'bind')).toContain("required option '--prefix <prefix>' not specified");
    expect(await refused('apikey', 'bind', '--prefix', 'none')).toContain('There is no key with this prefix.');
    expect(await refused('apikey', 'bind', '--prefix', prefix, '--tenant', 'south')).toContain('not a member of this tenant');
    expect(await refused('apikey', 'bind', '--prefix', prefix, '--tenant', 'nowhere')).toContain('not a member of this tenant');
    expect(await kit('apikey', 'list', '--user', 'bob')).not.toContain('tenant');
    expect(await kit('apikey', 'bind', '--prefix', prefix)).toMatch(/^Key \w+ acts in tenant [0-9a-f-]{36} only\.\n$/);
    await kit('apikey', 'bind', '--prefix', prefix, '--tenant', 'north');
    expect(await refused('apikey', 'bind', '--prefix', prefix, '--tenant', '*')).toContain('The key is for another tenant already.');
    await kit('apikey', 'revoke', '--prefix', prefix);
    expect(await refused('apikey', 'bind', '--prefix', prefix, '--tenant', 'north')).toContain('revoked');
  });

  test('bind: an owner in several tenants says which one', async () => {
    await kit('tenant', 'create', 'Nord', '--owner', 'ada');
    const { prefix } = JSON.parse(await kit('--json', 'apikey', 'create', '--user', 'ada', '--name', 'old', '--tenant', '*')) as {
      prefix: string;
    };
    await database.db.query('update api_keys set tenant_id = null where prefix = $1', [prefix]);
    expect(await refused('apikey', 'bind', '--prefix', prefix)).toContain('name the one that the key is for');
    expect(await kit('apikey', 'bind', '--prefix', prefix, '--tenant', 'none')).toBe(`Key ${prefix} acts in no tenant.\n`);
  });
});
