import { expect, test } from 'vitest';
import { z } from 'zod';
import { uploadRef, uploadRelation } from '../../src/contrib/uploads/index.ts';
import { CrudController, resource } from '../../src/crud/index.ts';
import { t } from '../../src/db/declare/column.ts';
import { migration } from '../../src/db/migrations/migration.ts';
import { createTable } from '../../src/db/migrations/operation.ts';
import { model } from '../../src/db/declare/model.ts';
import { isAuthenticated } from '../../src/permissions/built-ins.ts';
import { describeDatabases } from '../../src/testing/index.ts';
import { uploadApp } from './upload-app.ts';

const letters = model('letters', { id: t.uuidv7().pk(), owner_id: t.text(64), title: t.text(100), file_id: uploadRef().nullable() });
const initial = migration('0001_initial', [
  createTable('letters', { id: t.uuidv7().pk(), owner_id: t.text(64), title: t.text(100), file_id: t.ref('uploads').nullable() }),
]);
const post = { name: 'post', requires: ['uploads'], models: [letters], migrations: [initial] };
const letterResource = resource(letters, {
  owner: 'owner_id',
  input: ['title', 'file_id'],
  relations: { file: uploadRelation('file_id') },
});
class LetterController extends CrudController(letterResource, { permission: isAuthenticated, expand: ['file'] }) {}
/** Open notes are seen by everyone who signed in. */
const noteColumns = { id: t.uuidv7().pk(), owner_id: t.text(64).readOnly(), title: t.text(100), is_open: t.bool() };
const notes = model('notes', { ...noteColumns, file_id: uploadRef().nullable() });
const notesInitial = migration('0001_initial', [createTable('notes', { ...noteColumns, file_id: t.ref('uploads').nullable() })]);
const noteResource = resource(notes, {
  rows: ({ user }) => ({ or: [{ owner_id: user.id }, { is_open: true }] }),
  hooks: { create: async ({ input, user }, next) => next({ ...input, owner_id: user!.id }) },
  relations: { file: uploadRelation('file_id') },
  computed: {
    label: {
      requires: ['file.filename'],
      response: z.string().nullable(),
      value: (row: { file: { filename: string } | null }) => row.file?.filename ?? null,
    },
  },
});
class NoteController extends CrudController(noteResource, {
  permission: isAuthenticated,
  expand: ['file'],
  filters: { 'file.filename': ['eq'] },
  export: ['jsonl'],
}) {}
const text = Buffer.from('hello, world');

describeDatabases('uploads in generic controllers', (database) => {
  const start = () =>
    uploadApp({ database: database.db, modules: [post], app: { resources: [letterResource] }, mount: { '/letters': LetterController } });

  test('a client may send the id of its own complete upload, and of no other', async () => {
    await using app = await start();
    const mine = (await app.upload(text)).body.id;
    const pending = (await app.announce(text)).body.id;
    const as = (user: string) => ({ 'x-user': user, 'content-type': 'application/json' });
    const create = (user: string, fileId: unknown) =>
      app.call('POST', '/v1/letters', JSON.stringify({ title: 'Hello', file_id: fileId }), as(user));
    const created = await create('ann', mine);
    expect(created).toMatchObject({ status: 201, body: { file_id: mine } });
    const refused = { status: 422, body: { errors: [{ location: ['body', 'file_id'], code: 'unknown_reference' }] } };
    const unknown = await create('ann', '01900000-0000-7000-8000-000000000000');
    expect(unknown).toMatchObject(refused);
    const foreign = await create('bob', mine);
    expect(foreign).toMatchObject(refused);
    // Another user's upload and a missing one get the same answer.
    expect(foreign.body['errors']).toEqual(unknown.body['errors']);
    expect(await create('ann', pending)).toMatchObject(refused);
    expect(await create('ann', null)).toMatchObject({ status: 201 });
    const patch = await app.call('PATCH', `/v1/letters/${String(created.body['id'])}`, JSON.stringify({ file_id: pending }), as('ann'));
    expect(patch).toMatchObject(refused);
    expect(await app.call('DELETE', `/v1/uploads/${mine}`)).toMatchObject({ status: 409, body: { code: 'upload_in_use' } });
  });

  test('?expand= gives name, size, type and a signed address, and nothing of where the file lies', async () => {
    await using app = await start();
    const { id } = (await app.upload(text, { filename: 'Brief.txt' })).body;
    const headers = { 'x-user': 'ann', 'content-type': 'application/json' };
    const created = await app.call('POST', '/v1/letters', JSON.stringify({ title: 'Hello', file_id: id }), headers);
    const { body } = await app.call<{ file: Record<string, unknown> }>('GET', `/v1/letters/${String(created.body['id'])}?expand=file`);
    expect(body.file).toMatchObject({ id, filename: 'Brief.txt', content_type: 'text/plain' });
    expect(body.file['size']).toBe(text.length);
    expect(Object.keys(body.file).toSorted()).toEqual(['completed_at', 'content_type', 'filename', 'id', 'size', 'url']);
    const file = await app.call('GET', body.file['url'] as string, undefined, {});
    expect(file.bytes).toEqual(text);
    expect(file.headers['content-disposition']).toContain('attachment');
    const list = await app.call<{ items: { file: { url: string } | null }[] }>('GET', '/v1/letters?expand=file');
    expect(list.body.items.every(({ file: each }) => each === null || each.url.includes('signature='))).toBe(true);
  });

  test('who sees a row by another rule than its owner gets its file on every path, and may not refer to it', async () => {
    await using app = await uploadApp({
      database: database.db,
      modules: [{ name: 'board', requires: ['uploads'], models: [notes], migrations: [notesInitial] }],
      mount: { '/notes': NoteController },
    });
    const { id: fileId } = (await app.upload(text, { filename: 'Plan.txt' })).body;
    const { id: closedFile } = (await app.upload(text, { filename: 'Diary.txt' })).body;
    const as = (user: string) => ({ 'x-user': user, 'content-type': 'application/json' });
    const send = (user: string, body: object) => app.call('POST', '/v1/notes?expand=file', JSON.stringify(body), as(user));
    const open = await send('ann', { title: 'open', is_open: true, file_id: fileId });
    const closed = await send('ann', { title: 'closed', is_open: false, file_id: closedFile });
    expect([open.status, closed.status]).toEqual([201, 201]);
    type Note = { title: string; label: string | null; file: { id: string; filename: string; size: number; url: string } | null };
    const read = async (path: string, user = 'bob') => app.call<Note & { items: Note[] }>('GET', `/v1/notes${path}`, undefined, as(user));
    const one = await read(`/${String(open.body['id'])}?expand=file`);
    expect(one.body).toMatchObject({ label: 'Plan.txt', file: { id: fileId, filename: 'Plan.txt', size: text.length } });
    expect((await app.call('GET', one.body.file?.url ?? '', undefined, {})).bytes).toEqual(text);
    expect((await read('?expand=file')).body.items).toMatchObject([{ title: 'open', label: 'Plan.txt', file: { id: fileId } }]);
    expect((await read('?file__filename=Plan.txt')).body.items).toHaveLength(1);
    // The file of a row that bob does not see is as unknown as the row.
    expect((await read('?file__filename=Diary.txt')).body.items).toEqual([]);
    expect((await read(`/${String(closed.body['id'])}?expand=file`)).status).toBe(404);
    const exported = await app.call('GET', '/v1/notes/export?expand=file', undefined, as('bob'));
    expect(exported.bytes.toString()).toContain('Plan.txt');
    expect(exported.bytes.toString()).not.toContain('Diary.txt');
    // Bob may look at the upload itself no more than before, nor give it to a row of his own.
    expect((await app.call('GET', `/v1/uploads/${fileId}`, undefined, as('bob'))).status).toBe(404);
    expect(await send('bob', { title: 'taken', is_open: false, file_id: fileId })).toMatchObject({
      status: 422,
      body: { errors: [{ location: ['body', 'file_id'], code: 'unknown_reference' }] },
    });
    // Only complete files are shown.
    await database.db.query("update uploads set state = 'quarantined' where id = $1", [fileId]);
    expect((await read(`/${String(open.body['id'])}?expand=file`)).body).toMatchObject({ label: null, file: null });
  });
});
