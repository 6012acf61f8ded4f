import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { modelResource } from '../../kit/src/admin/index.ts';
import type { Module } from '../../kit/src/app/index.ts';
import { job, jobs, runDueJobs, startJob } from '../../kit/src/contrib/jobs/index.ts';
import { diskStore, UploadController, uploadRef, uploadRelation, uploads } from '../../kit/src/contrib/uploads/index.ts';
import { resource } from '../../kit/src/crud/index.ts';
import { createTable, insert, migration, model, t } from '../../kit/src/db/index.ts';
import { AdminBrowser, go } from './admin-browser.ts';
import { Shop, STAFF } from './shop/shop.ts';

const letters = model('letters', { id: t.uuidv7().pk(), owner_id: t.text(64), title: t.text(100), photo_id: uploadRef().nullable() });
const columns = { id: t.uuidv7().pk(), owner_id: t.text(64), title: t.text(100), photo_id: t.ref('uploads').nullable() };
const letterResource = resource(letters, {
  owner: 'owner_id',
  input: ['title', 'photo_id'],
  relations: { photo: uploadRelation('photo_id') },
  admin: { rows: true },
});
const post: Module = {
  name: 'post',
  requires: ['uploads'],
  models: [letters],
  migrations: [migration('0001_initial', [createTable('letters', columns)])],
  admin: { resources: [modelResource(letterResource, { singular: 'Letter', files: { photo_id: '/v1/photos' } })] },
};
const steps = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
const exported = job('letters.export', {
  input: z.object({}),
  async run({ progress }) {
    await progress(10, 'ten of them');
    await steps[0].promise;
    await progress(60);
    await steps[1].promise;
  },
});
class Documents extends UploadController {}
class Photos extends UploadController {
  static override readonly policy = { contentTypes: ['image/*'], bytesMax: 1_000_000 };
}
// One pixel.
const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');

let folder: string;
let shop: Shop;
let admin: AdminBrowser;
let customer: string;
let letter: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kit-admin-uploads-'));
  shop = await Shop.open({
    now: '2026-03-12T14:32:00.000Z',
    modules: [uploads({ store: diskStore({ folder }), cleanEverySeconds: 0 }), jobs({ jobs: [exported] }), post],
    mount: { '/v1': { '/documents': Documents, '/photos': Photos } },
    resources: [letterResource],
    asked: ['/v1/photos', '/uploads/files/'],
  });
  customer = (await shop.newUser({ username: 'ada', email: 'ada@acme.example' })).id;
  admin = await AdminBrowser.open(shop);
});
afterAll(async () => {
  await admin.close();
  await shop[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});
beforeEach(async () => {
  letter = (await insert(shop.db, letters, { owner_id: customer, title: 'Hello', photo_id: null })).id;
});
afterEach(() => admin.expectQuiet());

const photoOf = async (): Promise<string | null> =>
  (await shop.db.query<{ photo_id: string | null }>('select photo_id from letters where id = $1', [letter]))[0]?.photo_id ?? null;

test('a file that staff choose in a form is sent, belongs to the owner of the record once it is saved, and is shown as an image', async () => {
  const page = await admin.at(`#/letters/${letter}/edit`);
  await page.locator('input[type=file]').setInputFiles({ name: 'portrait.png', mimeType: 'image/png', buffer: PNG });
  await page.getByText('portrait.png').last().waitFor();
  // Sent, and nothing refers to it yet.
  expect(await photoOf()).toBeNull();
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByRole('link', { name: 'portrait.png' }).first().click();
  await page.getByRole('heading', { name: 'portrait.png', level: 1, exact: true }).waitFor();
  const preview = page.getByRole('img', { name: 'portrait.png' });
  await expect.poll(() => preview.evaluate((image) => (image as unknown as { naturalWidth: number }).naturalWidth)).toBe(1);
  const id = await photoOf();
  expect(await shop.db.query('select owner_id, state, content_type from uploads where id = $1', [id])).toEqual([
    { owner_id: customer, state: 'complete', content_type: 'image/png' },
  ]);
  const [entry] = await shop.db.query<{ actor_name: string }>(
    `select actor_name from audit_entries where action = 'upload.owner_changed' and target_id = $1`,
    [id],
  );
  expect(entry?.actor_name).toBe(STAFF);

  // The form names the present file, and can take it away again.
  await go(page, shop, `#/letters/${letter}/edit`);
  await page.getByText('portrait.png').last().waitFor();
  await page.getByRole('button', { name: 'Remove Photo' }).click();
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByRole('heading', { name: 'Hello', level: 1, exact: true }).waitFor();
  await expect.poll(photoOf).toBeNull();
  await page.context().close();
});

test('a file that the controller of the field does not accept is refused at the field, and the form stays', async () => {
  const page = await admin.at(`#/letters/${letter}/edit`);
  await page.locator('input[type=file]').setInputFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('hello') });
  await page.getByText(/type/i, { exact: false }).first().waitFor();
  await expect.poll(() => page.getByRole('button', { name: 'Save', exact: true }).isEnabled()).toBe(true);
  expect(await shop.db.query(`select id from uploads where filename = 'notes.txt'`)).toEqual([]);
  await page.context().close();
});

test('only a complete file of the member of staff itself can be attached', async () => {
  const page = await admin.at(`#/letters/${letter}`);
  const session = await page.evaluate(() => fetch('api/session').then((answer) => answer.json()) as Promise<{ csrf_token: string }>);
  const patch = (photo_id: string): Promise<{ status: number; body: unknown }> =>
    page.evaluate(
      async ([token, record, id]) => {
        const headers = { 'content-type': 'application/json', 'x-csrf-token': token };
        const answer = await fetch(`api/resources/letters/${record}`, { method: 'PATCH', headers, body: JSON.stringify({ photo_id: id }) });
        return { status: answer.status, body: await answer.json() };
      },
      [session.csrf_token, letter, photo_id] as const,
    );
  const foreign = '01900000-0000-7000-8000-00000000000a';
  await shop.db.query(
    `insert into uploads (id, owner_id, tenant_key, state, filename, content_type, size, pending_key, created_at, expires_at, complete_by, scan_attempts)
     values ($1, $2, '', 'complete', 'x.png', 'image/png', 1, 'x', $3, $3, $3, 0)`,
    [foreign, customer, shop.clock.now()],
  );
  for (const id of [foreign, '01900000-0000-7000-8000-00000000000b'])
    expect(await patch(id)).toMatchObject({ status: 422, body: { errors: [{ location: ['body', 'photo_id'] }] } });
  expect(await photoOf()).toBeNull();
  await page.context().close();
});

test('the progress bar of a job moves by itself while the list is open', async () => {
  await shop.db.transaction((tx) => startJob(tx, exported, {}));
  const page = await admin.at('#/jobs');
  const bar = page.getByRole('row').filter({ hasText: 'letters.export' }).getByRole('progressbar');
  const running = runDueJobs(shop.db, { queues: ['default'] });
  await expect.poll(() => bar.getAttribute('value')).toBe('10');
  steps[0].resolve();
  await expect.poll(() => bar.getAttribute('value')).toBe('60');
  steps[1].resolve();
  await running;
  await expect.poll(() => bar.getAttribute('value')).toBe('100');
  await page.context().close();
});
