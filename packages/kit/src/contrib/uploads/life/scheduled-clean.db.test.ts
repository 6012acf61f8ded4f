import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { lockRows } from '../../../../test/lock-rows.ts';
import { uploadApp } from '../../../../test/uploads/upload-app.ts';
import { describeDatabases } from '../../../testing/databases.ts';
import { processUploads } from './clean.ts';

describeDatabases('the scheduled clean-up', (database) => {
  test('expires an upload that never arrived, without a command', async () => {
    await using app = await uploadApp({ database: database.db, cleanEverySeconds: 1 });
    await app.test.app.start();
    const { id } = (await app.announce(Buffer.from('hello'))).body;
    app.clock.advance(3_600_000);
    const state = async () => (await database.db.query<{ state: string }>('select state from uploads where id = $1', [id]))[0]?.state;
    await expect.poll(state, { timeout: 60_000 }).toBe('expired');
  });

  test('an upload that another transaction has locked does not hold up the others', async ({ skip }) => {
    if (database.dialect === 'sqlite') skip('SQLite has one writer at a time');
    await using app = await uploadApp({ database: database.db });
    const [locked] = [await app.announce(Buffer.from('hello')), await app.announce(Buffer.from('hello'))];
    app.clock.advance(3_600_000);
    const release = await lockRows(database.db, 'uploads', [locked.body.id]);
    expect(await processUploads(database.db)).toMatchObject({ expired: 1 });
    await release();
    expect(await processUploads(database.db)).toMatchObject({ expired: 1 });
  });

  test('takes what a process that was killed while it wrote has left beside the file', async () => {
    await using app = await uploadApp({ database: database.db });
    const { id } = (await app.announce(Buffer.from('hello'))).body;
    const [row] = await database.db.query<{ pending_key: string }>('select pending_key from uploads where id = $1', [id]);
    const file = join(app.folder, row?.pending_key ?? '');
    await mkdir(dirname(file), { recursive: true });
    await writeFile(`${file}.0123456789abcdef.tmp`, 'hel');
    app.clock.advance(3_600_000);
    expect(await processUploads(database.db)).toMatchObject({ expired: 1, failed: 0 });
    expect(await app.files()).toEqual([]);
    expect(await readdir(dirname(dirname(file)))).toEqual([]);
  });

  test('takes the copy of a completion that ended before the row was written, and no copy that is in use', async () => {
    await using app = await uploadApp({ database: database.db });
    const { id, ...created } = (await app.announce(Buffer.from('hello'))).body;
    await app.send(created, Buffer.from('hello'));
    // The row cannot be written, as when the process ends after the copy.
    await database.db.query(
      database.dialect === 'sqlite'
        ? `create trigger no_completion before update of final_key on uploads begin select raise(abort, 'killed'); end`
        : `alter table uploads add constraint no_completion check (final_key is null) not valid`,
    );
    expect((await app.call('POST', `/v1/uploads/${id}/complete`)).status).not.toBe(200);
    await database.db.query(
      database.dialect === 'sqlite' ? 'drop trigger no_completion' : 'alter table uploads drop constraint no_completion',
    );
    expect((await app.files()).map((file) => file.split('/')[1])).toEqual(['final', 'pending']);
    expect(await app.call('POST', `/v1/uploads/${id}/complete`)).toMatchObject({ status: 200, body: { state: 'complete' } });
    await processUploads(database.db);
    expect(await app.files()).toHaveLength(2);
    app.clock.advance(7 * 3_600_000);
    await processUploads(database.db);
    expect((await app.files()).map((file) => file.split('/')[1])).toEqual(['final']);
    const { body } = await app.call<{ url: string }>('GET', `/v1/uploads/${id}?url=true`);
    expect((await app.call('GET', body.url, undefined, {})).bytes).toEqual(Buffer.from('hello'));
  });

  test('a copy that was due for removal when the upload adopts it is made again, never handed out without its bytes', async () => {
    await using app = await uploadApp({ database: database.db });
    const { id, ...created } = (await app.announce(Buffer.from('hello'))).body;
    await app.send(created, Buffer.from('hello'));
    // Every removal is claimed as soon as it is written, as by a clean-up that comes in the middle of a very long copy.
    const begin = {
      sqlite: [
        'create trigger claimed after insert on upload_removals begin update upload_removals set attempts = 1 where id = new.id; end',
      ],
      postgres: [
        'create function claim_removal() returns trigger language plpgsql as $$ begin update upload_removals set attempts = 1 where id = new.id; return null; end $$',
        'create trigger claimed after insert on upload_removals for each row execute function claim_removal()',
      ],
    };
    for (const statement of begin[database.dialect]) await database.db.query(statement);
    expect(await app.call('POST', `/v1/uploads/${id}/complete`)).toMatchObject({ status: 503, body: { code: 'store_unavailable' } });
    await database.db.query(database.dialect === 'sqlite' ? 'drop trigger claimed' : 'drop trigger claimed on upload_removals');
    expect(await app.call('POST', `/v1/uploads/${id}/complete`)).toMatchObject({ status: 200 });
  });
});
