import { mkdir, mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { KitProgram, sourceOf } from '../../../test/cli/kit-program.ts';
import { uploadApp, URL_KEYS } from '../../../test/uploads/upload-app.ts';
import { describeDatabases } from '../../testing/index.ts';

describeDatabases('kit uploads clean', (database) => {
  test('expires, removes and lists orphans; removes them only when told', async () => {
    await using app = await uploadApp({ database: database.db, policy: { expiresInSeconds: 1, graceSeconds: 0 } });
    const kept = await app.upload(Buffer.from('kept'));
    const [file = ''] = await app.files();
    app.clock.set(new Date(Date.now() - 3_600_000));
    const pending = await app.announce(Buffer.from('never completed'));
    const orphan = join(app.folder, dirname(dirname(file)), '0'.repeat(32), 'orphan.txt');
    await app.upload(Buffer.from('x'));
    await mkdir(dirname(orphan), { recursive: true });
    await writeFile(orphan, 'orphan');
    await utimes(orphan, new Date(0), new Date(0));

    const folder = await mkdtemp(join(tmpdir(), 'kit-uploads-cli-'));
    await writeFile(
      join(folder, 'kit.config.ts'),
      `import { createApp } from ${sourceOf('index.ts')};
import { diskStore, UploadController, uploads } from ${sourceOf('contrib/uploads/index.ts')};
export default createApp({ modules: [uploads({ store: diskStore({ folder: ${JSON.stringify(app.folder)} }) })], mount: { '/v1': { '/uploads': UploadController } } });
`,
    );
    const program = new KitProgram(folder, { DATABASE_URL: database.url, UPLOAD_URL_KEYS: URL_KEYS.join(',') });
    const run = async (...args: readonly string[]) => {
      const { code, stdout, stderr } = await program.run(['uploads', ...args]);
      return { code, stdout: stdout.trimEnd(), stderr };
    };
    expect(await program.spawn(['uploads', 'clean', '--limit', '0'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('--limit is "0"; use an integer from 1 to 999999999.'),
    });
    expect(await run('clean', '--remove')).toMatchObject({ code: 1 });
    expect(await run('clean')).toMatchObject({ code: 0, stdout: '1 expired, 0 scanned, 1 objects removed, 0 failed.' });
    expect(await app.call('GET', `/v1/uploads/${pending.body.id}`)).toMatchObject({ body: { state: 'expired' } });
    const dry = await run('clean', '--orphans', '--json');
    expect(JSON.parse(dry.stdout)).toMatchObject({
      expired: 0,
      orphans: [{ key: expect.stringMatching(/orphan\.txt$/), size: 6 }],
      orphans_removed: 0,
    });
    expect(await app.files()).toHaveLength(3);
    const real = await run('clean', '--orphans', '--remove');
    expect(real).toMatchObject({ code: 0, stdout: expect.stringContaining('1 orphans removed.') });
    expect(await app.files()).toHaveLength(2);
    expect(await app.call('GET', `/v1/uploads/${kept.body.id}?url=true`)).toMatchObject({ status: 200 });
    await program.close();
    await rm(folder, { recursive: true, force: true });
  });
});
