import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { admin, modelResource } from '../../src/admin/index.ts';
import type { AdminContext } from '../../src/app/index.ts';
import { accounts } from '../../src/contrib/accounts/index.ts';
import { adminUploads } from '../../src/contrib/uploads/serve/admin-uploads.ts';
import { diskStore, s3Store, UploadController, uploadRef, uploads } from '../../src/contrib/uploads/index.ts';
import { createTable, migration, model, t } from '../../src/db/index.ts';
import { describeDatabases, testApp } from '../../src/testing/index.ts';
import { uploadApp } from './upload-app.ts';

test('the page of the admin site may send files to the store, and to no other origin', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'kit-admin-csp-'));
  const credentials = { accessKeyId: 'id', secretAccessKey: 'secret' };
  const stores = [
    [diskStore({ folder }), "'self'"],
    [diskStore({ folder, baseUrl: 'https://files.example.com/x' }), "'self' https://files.example.com"],
    [s3Store({ region: 'eu-central-1', bucket: 'invoices', credentials }), "'self' https://invoices.s3.eu-central-1.amazonaws.com"],
  ] as const;
  for (const [store, expected] of stores) {
    await using app = await testApp({
      modules: [accounts(), uploads({ store, cleanEverySeconds: 0 }), admin()],
      mount: { '/v1': { '/files': UploadController } },
    });
    const policy = String((await app.inject('/admin/')).headers['content-security-policy']);
    expect(/connect-src ([^;]+);/.exec(policy)?.[1]).toBe(expected);
    expect(policy).toContain("img-src 'self' data:;");
  }
  await rm(folder, { recursive: true, force: true });
});

const notes = model('notes', { id: t.uuidv7().pk(), title: t.text(100), file_id: uploadRef().nullable() });
const initial = migration('0001_initial', [
  createTable('notes', { id: t.uuidv7().pk(), title: t.text(100), file_id: t.ref('uploads').nullable() }),
]);
const text = Buffer.from('hello, world');

describeDatabases('files of a table without a resource', (database) => {
  test('only a complete file of the member of staff itself can be attached, and a refusal changes nothing', async () => {
    const resource = modelResource(notes);
    const post = { name: 'post', requires: ['uploads'], models: [notes], migrations: [initial], admin: { resources: [resource] } };
    await using app = await uploadApp({ database: database.db, modules: [post] });
    const user = { id: 'ann', username: 'ann', email: null, is_active: true, is_staff: true, is_superuser: false };
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
      uploads: adminUploads(diskStore({ folder: app.folder })),
    };
    const create = (title: string, file_id: string) =>
      Promise.resolve(resource.create?.(context, { title, file_id })).catch((error: { errors?: unknown }) => error.errors);
    const [own, pending] = [(await app.upload(text)).body.id, (await app.announce(text)).body.id];
    const foreign = (await app.announce(text, {}, { 'x-user': 'bob' })).body.id;
    await app.db.query(`update uploads set state = 'complete' where id = $1`, [foreign]);
    expect(await create('mine', own)).toMatchObject({ message: 'mine created.' });
    expect(await create('pending', pending)).toMatchObject([{ location: ['body', 'file_id'], code: 'unknown_reference' }]);
    expect(await create('foreign', foreign)).toMatchObject([{ location: ['body', 'file_id'], code: 'unknown_reference' }]);
    const stored = await app.db.query<{ id: string; title: string; file_id: string }>('select id, title, file_id from notes');
    expect(stored).toMatchObject([{ title: 'mine', file_id: own }]);
    const update = (file_id: string) => resource.update?.(context, stored[0]?.id ?? '', { file_id }, null);
    await expect(update(foreign)).rejects.toMatchObject({ code: 'validation_error' });
    expect(await app.db.query('select file_id from notes')).toEqual([{ file_id: own }]);
  });
});
