import { Cursors } from '../../db/sql/keyset/cursor.ts';
import { expect, test } from 'vitest';
import { uploadApp } from '../../../test/uploads/upload-app.ts';
import type { AdminContext, AdminListQuery } from '../../app/index.ts';
import { describeDatabases } from '../../testing/index.ts';
import { uploadsAdmin } from './admin.ts';
import { diskStore } from './stores/disk-store.ts';

const png = Buffer.concat([Buffer.from('\u0089PNG\r\n\u001a\n\0\0\0\rIHDR', 'latin1'), Buffer.alloc(40, 1)]);
const text = Buffer.from('hello, world');

const cursors = new Cursors([new Uint8Array(32)]);

describeDatabases('uploads in the admin site', (database) => {
  async function start() {
    const app = await uploadApp({ database: database.db });
    await app.db.query('delete from uploads');
    const user = { id: 'root', username: 'root', email: null, is_active: true, is_staff: true, is_superuser: false };
    const { log, clock } = app.test.app;
    const context: AdminContext = {
      db: app.db,
      databases: { default: app.db },
      clock,
      principal: { user, scheme: 'test', scopes: null },
      requestId: 'r',
      log,
      audit: null,
      app: app.test.app,
      tenant: () => Promise.resolve(null),
      linkTo: () => null,
      titlesOf: () => Promise.resolve(new Map()),
      idsOf: () => Promise.resolve(new Map()),
      sightOf: () => Promise.resolve(null),
      refersTo: () => null,
    };
    const declaration = uploadsAdmin(diskStore({ folder: app.folder }));
    return { ...app, context, declaration, resource: declaration.resources[0] };
  }
  const query: AdminListQuery = { search: null, filters: {}, sort: null, limit: 50, cursor: null, cursors, bound: 'uploads' };

  test('are listed, filtered and searched', async () => {
    await using app = await start();
    const { body } = await app.upload(text, { filename: 'Rechnung.txt' });
    await app.announce(text);
    const list = (asked: AdminListQuery) => app.resource.list(app.context, asked);
    expect((await list(query)).items).toHaveLength(2);
    expect((await list({ ...query, filters: { state: 'complete' } })).items).toMatchObject([
      { id: body.id, title: 'Rechnung.txt', values: { owner: 'ann', size: 12, state: { value: 'complete' } } },
    ]);
    expect((await list({ ...query, search: 'rechnung' })).items).toHaveLength(1);
    expect((await list({ ...query, filters: { owner: 'bob' } })).items).toEqual([]);
  });

  test('images are previewed, other files are a link, and what is not complete is neither', async () => {
    await using app = await start();
    const image = await app.upload(png, { filename: 'a.png', content_type: 'image/png' });
    const file = await app.upload(text);
    const pending = await app.announce(text);
    const sections = async (id: string) => (await app.resource.read(app.context, id))?.sections ?? [];
    const [, preview] = await sections(image.body.id);
    expect(preview).toMatchObject({ kind: 'image', text: 'a.png', url: expect.stringMatching(/^\/uploads\/files\//) });
    const shown = await app.call('GET', (preview as { url: string }).url, undefined, {});
    expect(shown).toMatchObject({ status: 200, headers: { 'content-type': 'image/png' } });
    expect((await sections(file.body.id))[1]).toMatchObject({ kind: 'facts', title: 'File' });
    expect(await sections(pending.body.id)).toHaveLength(1);
  });

  test('the overview tells who uses how much, and clean-up removes what is over', async () => {
    await using app = await start();
    await app.upload(text);
    const over = await app.announce(text);
    await app.announce(text, {}, { 'x-user': 'bob' });
    const overview = await app.declaration.overview?.(app.context, '24h');
    expect(overview?.tables[0]?.rows).toMatchObject([
      { id: 'ann', values: { bytes: 24, count: 2 } },
      { id: 'bob', values: { bytes: 12, count: 1 } },
    ]);
    app.clock.advance(3_600_000);
    const [action] = app.resource.actions;
    expect(await action?.run(app.context, [over.body.id], {})).toMatchObject({ message: '1 upload cleaned up.' });
    expect(await app.call('GET', `/v1/uploads/${over.body.id}`)).toMatchObject({ body: { state: 'expired' } });
    await action?.run(app.context, [over.body.id], {});
    expect(await app.call('GET', `/v1/uploads/${over.body.id}`)).toMatchObject({ status: 404 });
  });

  test('the file of an upload that is deleted in a transaction is removed when that has committed, and stays when it is rolled back', async () => {
    await using app = await start();
    const { body } = await app.upload(text);
    const downloads = async () => {
      const { status, body: shown } = await app.call('GET', `/v1/uploads/${body.id}?url=true`);
      return status === 200 ? (await app.call('GET', String(shown.url), undefined, {})).status : status;
    };
    const inside = (work: (tx: typeof app.db) => Promise<void>) => app.db.transaction((tx) => work(tx as typeof app.db));
    const remove = (db: typeof app.db) => app.resource.remove?.({ ...app.context, db, databases: { default: db } }, body.id);
    const undone = inside(async (tx) => {
      await remove(tx);
      throw new Error('undone');
    });
    await expect(undone).rejects.toThrow('undone');
    expect(await downloads()).toBe(200);
    await inside(async (tx) => void (await remove(tx)));
    await expect.poll(() => app.db.query('select 1 as one from upload_removals')).toEqual([]);
    expect(await downloads()).toBe(404);
  });
});
