import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeDatabases } from '../../src/testing/databases.ts';
import { auditLog } from '../audit-log.ts';
import { KitProgram, sourceOf } from '../cli/kit-program.ts';
import { unzip } from '../personal/unzip.ts';

const packageOf = (name: string): string => JSON.stringify(import.meta.resolve(name));

describeDatabases('kit organization', (database) => {
  let folder = '';
  let program: KitProgram;
  /** The output of a command that must succeed. */
  const kit = async (...args: string[]) => {
    const ran = await program.run(args);
    expect([args, ran.code, ran.stderr]).toEqual([args, 0, '']);
    return ran.stdout;
  };
  /** What a command that must fail says; it prints nothing else. */
  const refused = async (...args: string[]) => {
    const ran = await program.run(args);
    expect([args, ran.code === 0, ran.stdout]).toEqual([args, false, '']);
    expect(ran.stderr).not.toMatch(/\n\s+at /);
    return ran.stderr;
  };
  const actions = async () => (await auditLog(database.db)).map(({ action }) => action);
  const now = () => (database.dialect === 'sqlite' ? new Date().toISOString() : new Date());
  const remove = (id: string) => database.db.query('delete from "organization" where "id" = $1', [id]);

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'kit-organization-'));
    program = new KitProgram(folder);
    await writeFile(
      join(folder, 'kit.config.ts'),
      `import { betterAuth as createAuth } from ${packageOf('better-auth')};
import { organization } from ${packageOf('better-auth/plugins')};
import { appDatabase, createApp } from ${sourceOf('index.ts')};
import { betterAuth, joinedKysely, kitPlugin } from ${sourceOf('contrib/better-auth/index.ts')};
import { audit } from ${sourceOf('contrib/audit/index.ts')};
import { createTable, migration, model, t } from ${sourceOf('db/index.ts')};
import { resource } from ${sourceOf('crud/index.ts')};
const database = appDatabase({ defaultUrl: ${JSON.stringify(database.url)} });
const auth = createAuth({
  baseURL: 'http://127.0.0.1:3000',
  basePath: '/auth',
  secret: 'a-secret-of-the-tests-with-more-than-32-characters',
  database: { db: joinedKysely(database), type: ${JSON.stringify(database.dialect)}, transaction: true },
  emailAndPassword: { enabled: true, revokeSessionsOnPasswordReset: true },
  verification: { storeIdentifier: 'hashed' },
  advanced: { database: { validateSchema: false }, disableOriginCheck: false },
  telemetry: { enabled: false },
  plugins: [organization(), kitPlugin()],
});
const columns = { id: t.uuidv7().pk(), org: t.text(64).readOnly(), title: t.text(80) };
const indexes = [{ columns: ['org', '-id'] }];
const papers = model('papers', columns, { indexes });
export default createApp({
  database,
  modules: [
    betterAuth(auth),
    audit(),
    { name: 'papers', models: [papers], migrations: [migration('0001_initial', [createTable('papers', columns, { indexes })])] },
  ],
  resources: [resource(papers, { tenant: 'org' })],
  mount: {},
});
`,
    );
    expect((await program.run(['migrate'])).code).toBe(0);
    for (const name of ['north', 'south', 'east']) {
      await database.db.query('insert into "organization" ("id", "name", "slug", "createdAt") values ($1, $2, $3, $4)', [
        `id-${name}`,
        name,
        name,
        now(),
      ]);
      const user = [`user-${name}`, name, `${name}@example.com`, true, now(), now()];
      await database.db.query(
        'insert into "user" ("id", "name", "email", "emailVerified", "createdAt", "updatedAt") values ($1, $2, $3, $4, $5, $6)',
        user.map((each) => (database.dialect === 'sqlite' && typeof each === 'boolean' ? Number(each) : each)),
      );
      await database.db.query('insert into "member" ("id", "organizationId", "userId", "role", "createdAt") values ($1, $2, $3, $4, $5)', [
        `member-${name}`,
        `id-${name}`,
        `user-${name}`,
        'owner',
        now(),
      ]);
      await database.db.query('insert into papers (id, org, title) values ($1, $2, $3)', [crypto.randomUUID(), `id-${name}`, `of ${name}`]);
    }
  }, 600_000);
  afterAll(async () => {
    await program.close();
    await rm(folder, { recursive: true, force: true });
  });

  test('suspend and resume, by slug or id, also twice', async () => {
    expect(await refused('organization', 'suspend', 'nowhere')).toContain('There is no organization "nowhere".');
    for (const name of ['north', 'id-north'])
      expect(await kit('organization', 'suspend', name, '--reason', 'unpaid')).toBe(
        'north is suspended; resume it with kit organization resume.\n',
      );
    expect(await database.db.query('select organization_id, reason from better_auth_suspensions')).toEqual([
      { organization_id: 'id-north', reason: 'unpaid' },
    ]);
    expect(await kit('organization', 'resume', 'north')).toBe('north is active.\n');
    expect(JSON.parse(await kit('--json', 'organization', 'resume', 'north'))).toEqual({ resumed: 'id-north' });
    expect((await actions()).filter((action) => /suspended|resumed/.test(action)).toSorted()).toEqual([
      'tenant.resumed',
      'tenant.suspended',
    ]);
  });

  test('export: what the organization has in the tables of the app, and nothing of another', async () => {
    const file = join(folder, 'north.zip');
    expect(await refused('organization', 'export', 'nowhere', '--to', file)).toContain('There is no organization "nowhere".');
    expect(await program.run(['organization', 'export', 'north', '--to', file])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^\d+ rows of north are in /) as string,
      stderr: expect.stringMatching(/^Tables: (\d+) to do\nTables: \1 done\n$/) as string,
    });
    const text = unzip(await readFile(file)).get('papers.jsonl');
    expect(text).toContain('of north');
    expect(text).not.toContain('of south');
    expect(await actions()).toContain('tenant.exported');
  });

  test('purge: erases the rows of a deleted organization after its grace, unless they are kept or held', async () => {
    const papers = async () =>
      (await database.db.query<{ title: string }>('select title from papers order by title')).map(({ title }) => title);
    expect(await refused('organization', 'keep', 'id-north')).toContain('No erasure of id-north waits.');
    for (const name of ['north', 'south', 'east']) await remove(`id-${name}`);
    expect(await kit('organization', 'purge')).toBe('The rows of 0 organizations are erased.\n');
    expect(await kit('organization', 'keep', 'id-east')).toBe('The rows of id-east stay.\n');
    expect(await kit('organization', 'hold', 'id-south', '--reason', 'a lawsuit')).toBe('The rows of id-south stay as they are.\n');
    await database.db.query('update kit_erasures set due_at = $1', [new Date('2020-01-01T00:00:00.000Z')]);
    expect(await kit('organization', 'purge')).toBe('The rows of 1 organizations are erased.\n');
    expect(await papers()).toEqual(['of east', 'of south']);
    expect(await kit('organization', 'release', 'id-south')).toBe('The legal hold of id-south has ended.\n');
    expect(await kit('organization', 'purge')).toBe('The rows of 1 organizations are erased.\n');
    expect(await papers()).toEqual(['of east']);
  });
});
