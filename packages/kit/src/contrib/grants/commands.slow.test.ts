import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { KitProgram, sourceOf } from '../../../test/cli/kit-program.ts';
import { describeDatabases } from '../../testing/databases.ts';

const ID = '01890000-0000-7000-8000-00000000000a';
const OWNER = '01890000-0000-7000-8000-00000000000b';

describeDatabases('kit grants and kit group', (database) => {
  let folder = '';
  let program: KitProgram;
  async function run(...args: string[]) {
    const { code, stdout, stderr } = await program.run(args);
    return { code, stdout: stdout.trimEnd(), stderr };
  }
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'kit-grants-'));
    program = new KitProgram(folder);
    await writeFile(
      join(folder, 'kit.config.ts'),
      `import { createApp } from ${sourceOf('index.ts')};
import { createTable, migration, model, t } from ${sourceOf('db/index.ts')};
import { accounts } from ${sourceOf('contrib/accounts/index.ts')};
import { objectActions, objectGrants } from ${sourceOf('contrib/grants/index.ts')};
const notes = model('notes', { id: t.uuidv7().pk(), owner_id: t.uuid() });
const actions = objectActions(notes, { actions: ['view', 'change', 'share'], sets: { viewer: ['view'], editor: ['viewer', 'change'] }, owner: 'owner_id' });
const tables = { name: 'notes', models: [notes], migrations: [migration('0001_initial', [createTable('notes', notes.columns)])] };
export default createApp({ database: ${JSON.stringify(database.url)}, modules: [accounts(), objectGrants({ objects: [actions] }), tables], mount: {} });
`,
    );
    expect(await run('migrate')).toMatchObject({ code: 0 });
    await database.db.query('insert into notes (id, owner_id) values ($1, $2)', [ID, OWNER]);
  }, 120_000);
  afterAll(async () => {
    await program.close();
    await rm(folder, { recursive: true, force: true });
  });

  test('grant, list, explain, revoke and prune, for users and groups by name', { timeout: 300_000 }, async () => {
    const note = `notes/${ID}`;
    expect(await run('user', 'create', 'ada', '--no-password')).toMatchObject({ code: 0 });
    expect(await run('group', 'create', 'desk')).toMatchObject({ code: 0 });
    expect((await run('group', 'add', 'desk', 'ada')).stdout).toBe('ada is a member of desk.');
    expect(await run('grants', 'explain', 'ada', note, 'view')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`No. ada holds nothing on ${note}, not "view".`),
    });
    expect((await run('grants', 'grant', 'group:desk', note, '--set', 'editor')).stdout).toBe(`group:desk was granted editor on ${note}.`);
    const explained = await run('grants', 'explain', 'ada', note, 'change');
    expect(explained.code).toBe(0);
    expect(explained.stdout).toBe(`Yes. ada may do "change": the group desk was granted editor on ${note}.`);
    expect((await run('grants', 'list', '--object', note)).stdout).toMatch(/^group:\S+ \(desk\) {2}notes\/\S+ {2}editor$/);
    expect((await run('grants', 'grant', 'user:ada', note, '--action', 'view', '--set', 'editor')).code).toBe(1);
    expect((await run('grants', 'grant', 'user:nobody', note, '--set', 'viewer')).stderr).toContain('There is no user "nobody"');
    expect((await run('grants', 'list', '--object', 'planets/1')).stderr).toContain('Known: notes');
    expect((await run('grants', 'revoke', 'group:desk', note)).stdout).toBe(`The grant of group:desk on ${note} is gone.`);
    expect((await run('grants', 'list')).stdout).toBe('There are no grants.');
    expect((await run('grants', 'prune')).stdout).toBe('Removed 0 expired grants and 0 on objects that are gone.');
    expect((await run('group', 'list')).stdout).toMatch(/^desk {2}- {2}1 members {2}/);
    expect((await run('group', 'delete', 'desk')).stdout).toBe('Group desk deleted.');
  });
});
