import { expect, test } from 'vitest';
import { uploadApp } from '../../../../test/uploads/upload-app.ts';
import { t } from '../../../db/declare/column.ts';
import { migration } from '../../../db/migrations/migration.ts';
import { createTable } from '../../../db/migrations/operation.ts';
import { model } from '../../../db/declare/model.ts';
import { insert, remove } from '../../../db/rows/repository.ts';
import { describeDatabases } from '../../../testing/index.ts';
import { countReferences, expandUpload, requireUpload, unreferencedUploads, uploadRef } from './upload-ref.ts';

const invoices = model('invoices', { id: t.uuidv7().pk(), file_id: uploadRef(), copy_id: uploadRef().nullable() });
const initial = migration('0001_initial', [
  createTable('invoices', { id: t.uuidv7().pk(), file_id: t.ref('uploads'), copy_id: t.ref('uploads').nullable() }),
]);
const billing = { name: 'billing', requires: ['uploads'], models: [invoices], migrations: [initial] };
const text = Buffer.from('hello');

describeDatabases('references to uploads', (database) => {
  const start = () => uploadApp({ database: database.db, modules: [billing] });
  const ann = { owner: 'ann', tenantKey: '' };

  test('only a complete upload of the same owner is accepted', async () => {
    await using app = await start();
    const done = await app.upload(text);
    const pending = await app.announce(text);
    const at = ['body', 'file_id'];
    expect(await requireUpload(app.db, ann, done.body.id, at)).toMatchObject({ state: 'complete' });
    const refused = (scope: typeof ann, id: string) =>
      requireUpload(app.db, scope, id, at).catch((error: { errors: readonly { code: string }[] }) => error.errors);
    expect(await refused(ann, pending.body.id)).toMatchObject([{ location: at, code: 'not_ready' }]);
    const foreign = await refused({ owner: 'bob', tenantKey: '' }, done.body.id);
    expect(foreign).toEqual(await refused(ann, '01900000-0000-7000-8000-000000000000'));
    expect(foreign).toEqual(await refused(ann, 'not an id'));
    expect(foreign).toEqual(await refused({ owner: 'ann', tenantKey: 'other' }, done.body.id));
  });

  test('references are counted by query; an upload in use cannot be deleted', async () => {
    await using app = await start();
    const [first, second] = [await app.upload(text), await app.upload(text)];
    const row = await insert(app.db, invoices, { file_id: first.body.id, copy_id: first.body.id });
    expect(await countReferences(app.db, [invoices], first.body.id)).toBe(2);
    expect(await app.call('DELETE', `/v1/uploads/${first.body.id}`)).toMatchObject({ status: 409, body: { code: 'upload_in_use' } });
    const olderThan = new Date(app.clock.now().getTime() + 1000);
    const unused = await unreferencedUploads(app.db, [invoices], { olderThan, limit: 100 });
    expect(unused.map(({ id }) => id)).toContain(second.body.id);
    expect(unused.map(({ id }) => id)).not.toContain(first.body.id);
    await remove(app.db, invoices, row.id);
    expect(await app.call('DELETE', `/v1/uploads/${first.body.id}`)).toMatchObject({ status: 204 });
  });

  test('a reader gets name, size, type and a signed address', async () => {
    await using app = await start();
    const { body } = await app.upload(text, { filename: 'Rechnung.txt' });
    const expanded = await expandUpload(app.db, body.id);
    expect(expanded).toMatchObject({ id: body.id, filename: 'Rechnung.txt', size: 5, content_type: 'text/plain' });
    expect((await app.call('GET', expanded?.url ?? '', undefined, {})).bytes).toEqual(text);
    expect(await expandUpload(app.db, (await app.announce(text)).body.id)).toBeNull();
  });
});
