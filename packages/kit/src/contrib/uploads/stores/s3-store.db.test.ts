import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { sha256, uploadApp } from '../../../../test/uploads/upload-app.ts';
import { describeDatabases, fakeClock } from '../../../testing/index.ts';
import { s3Double, type S3Double } from '../../../testing/s3/s3-double.ts';
import { audit } from '../../audit/index.ts';
import { jobs, runDueJobs } from '../../jobs/index.ts';
import { findOrphans, processUploads } from '../life/clean.ts';
import { s3Store, type S3StoreOptions } from './s3-store.ts';

const text = Buffer.from('hello, world');
const DAY_MS = 86_400_000;

const storeOf = (double: S3Double, more: Partial<S3StoreOptions> = {}) =>
  s3Store({
    endpoint: double.endpoint,
    region: double.region,
    bucket: double.bucket,
    credentials: double.key,
    forcePathStyle: true,
    prefix: 'app/x',
    ...more,
  });

describeDatabases('uploads in S3', (database) => {
  /** The app and the store share a clock. */
  async function start(options: Parameters<typeof uploadApp>[0] = {}, more: Partial<S3StoreOptions> = {}) {
    const clock = fakeClock(new Date());
    const double = await s3Double({ clock });
    const app = await uploadApp({ database: database.db, store: () => storeOf(double, more), app: { clock }, ...options });
    const put = (created: { url: string; headers: Record<string, string> }, body: Buffer, headers: Record<string, string> = {}) =>
      fetch(created.url, { method: 'PUT', body, headers: { ...created.headers, ...headers } });
    return {
      ...app,
      clock,
      double,
      put,
      complete: (id: string, body?: object) => app.call('POST', `/v1/uploads/${id}/complete`, body),
      async [Symbol.asyncDispose]() {
        await app[Symbol.asyncDispose]();
        await double.close();
      },
    };
  }

  test('what is deleted counts for the quota until nothing can be sent to its URL any more, and what was sent is removed then', async () => {
    await using app = await start({ policy: { quotaPerOwner: { bytes: 20, count: 10 } } });
    for (const isCompleted of [false, true]) {
      const { body } = await app.announce(text);
      await app.put(body, text);
      expect((await (isCompleted ? app.complete(body.id) : app.call('GET', `/v1/uploads/${body.id}`))).status).toBe(200);
      expect(await app.call('DELETE', `/v1/uploads/${body.id}`)).toMatchObject({ status: 204 });
      expect(await app.call('GET', `/v1/uploads/${body.id}`)).toMatchObject({ status: 404 });
      expect(app.double.stored.keys()).toEqual([]);
      // The URL still works, and the store does not ask the app.
      expect((await app.put(body, text)).status).toBe(200);
      expect(await app.announce(text)).toMatchObject({ status: 409, body: { code: 'quota_exceeded', used: 12 } });
      app.clock.advance(661_000);
      expect((await app.put(body, text)).status).toBe(403);
      await processUploads(database.db);
      expect(app.double.stored.keys()).toEqual([]);
      const again = await app.announce(text);
      expect(again.status).toBe(201);
      await app.call('DELETE', `/v1/uploads/${again.body.id}`);
      app.clock.advance(661_000);
      await processUploads(database.db);
    }
  });

  test('what is sent again after completion is removed when the URL has expired, and the completed file stays', async () => {
    await using app = await start();
    const { body } = await app.announce(text);
    await app.put(body, text);
    await app.complete(body.id);
    await app.put(body, text);
    expect(app.double.stored.keys()).toHaveLength(2);
    app.clock.advance(661_000);
    await processUploads(database.db);
    expect(app.double.stored.keys()).toEqual([expect.stringContaining('/final/')]);
  });

  test('the client sends to the store itself, and the verified object moves to a key it never had an address for', async () => {
    await using app = await start();
    const { body } = await app.announce(text, { checksum_sha256: sha256(text) });
    expect(body.headers).toEqual({ 'content-length': '12', 'content-type': 'text/plain', 'x-amz-checksum-sha256': sha256(text) });
    expect((await app.put(body, text)).status).toBe(200);
    const [pending = ''] = app.double.stored.keys();
    expect(pending).toMatch(/^app\/x\/[0-9a-f-]{36}\/pending\/ann\/[0-9a-f]{32}\/a\.txt$/);
    expect(await app.complete(body.id)).toMatchObject({ status: 200, body: { state: 'complete' } });
    const [final = '', ...others] = app.double.stored.keys();
    expect(others).toEqual([]);
    expect(final).toMatch(/^app\/x\/[0-9a-f-]{36}\/final\/ann\/[0-9a-f]{32}\/a\.txt$/);
    expect(final.split('/')[5]).not.toBe(pending.split('/')[5]);

    const read = await app.call<{ url: string }>('GET', `/v1/uploads/${body.id}?url=true`);
    const fetched = await fetch(read.body.url);
    expect(Buffer.from(await fetched.arrayBuffer())).toEqual(text);
    expect(fetched.headers.get('content-disposition')).toBe(`attachment; filename="a.txt"; filename*=UTF-8''a.txt`);
    app.clock.advance(301_000);
    expect((await fetch(read.body.url)).status).toBe(403);

    // The address still works for the pending key until it expires; what it leaves there is removed then, and the upload stays as it is.
    await app.put(body, text);
    expect(await app.call('GET', `/v1/uploads/${body.id}?url=true`)).toMatchObject({ status: 200 });
    expect(await app.call('DELETE', `/v1/uploads/${body.id}`)).toMatchObject({ status: 204 });
    expect(app.double.stored.keys()).toEqual([pending]);
    app.clock.advance(DAY_MS + 1_500_000 + 1000);
    await processUploads(database.db);
    expect(app.double.stored.keys()).toEqual([]);
  });

  test('size, type and checksum lies are refused by the store', async () => {
    await using app = await start();
    const { body } = await app.announce(text, { checksum_sha256: sha256(text) });
    expect((await app.put(body, Buffer.from('hello, world!'), { 'content-length': '13' })).status).toBe(403);
    expect((await app.put(body, text, { 'content-type': 'text/html' })).status).toBe(403);
    expect((await app.put(body, Buffer.from('hello, there'))).status).toBe(400);
    expect(app.double.stored.keys()).toEqual([]);
    expect(await app.complete(body.id)).toMatchObject({ status: 409, body: { code: 'not_uploaded' } });
  });

  test('what lies in the store although it should not is rejected at completion and removed', async () => {
    await using app = await start();
    const lies = [
      { bytes: Buffer.from('longer than announced'), contentType: 'text/plain', code: 'upload_mismatch' },
      { bytes: text, contentType: 'text/html', code: 'upload_mismatch' },
      { bytes: Buffer.from('hello, there'), contentType: 'text/plain', code: 'checksum_mismatch' },
    ];
    for (const { bytes, contentType, code } of lies) {
      const { body } = await app.announce(text, { checksum_sha256: sha256(text) });
      await app.put(body, text);
      const [key = ''] = app.double.stored.keys();
      app.double.stored.put(key, { bytes, contentType, etag: 'e', sha256: sha256(bytes), modifiedAt: app.clock.now() });
      expect(await app.complete(body.id)).toMatchObject({ status: 422, body: { code } });
      expect(await app.call('GET', `/v1/uploads/${body.id}`)).toMatchObject({ body: { state: 'rejected', reason: expect.any(String) } });
      expect(await app.complete(body.id)).toMatchObject({ status: 422 });
      expect(app.double.stored.keys()).toEqual([]);
    }
  });

  test('an object that is replaced between verification and copy is not copied', async () => {
    await using app = await start();
    const { body } = await app.announce(text);
    await app.put(body, text);
    const [key = ''] = app.double.stored.keys();
    app.double.fail({
      when: ({ method }) => {
        if (method !== 'PUT') return false;
        const bytes = Buffer.from('evil, world!');
        app.double.stored.put(key, { bytes, contentType: 'text/plain', etag: 'other', sha256: null, modifiedAt: app.clock.now() });
        return true;
      },
      fault: 0,
    });
    expect(await app.complete(body.id)).toMatchObject({ status: 409, body: { code: 'upload_changed' } });
    expect(app.double.stored.keys()).toEqual([key]);
    expect(await app.complete(body.id)).toMatchObject({ status: 200 });
  });

  test.each(['error', 'lost', 'reset', 'cut'] as const)(
    'the store is down at each step (%s): nothing counts by half, and the next try succeeds',
    async (fault) => {
      await using app = await start();
      const steps = [
        ({ method }: { method: string }) => method === 'HEAD',
        ({ method }: { method: string }) => method === 'GET',
        ({ method }: { method: string }) => method === 'PUT',
        ({ method }: { method: string }) => method === 'DELETE',
      ];
      for (const [index, when] of steps.entries()) {
        const { body } = await app.announce(text, { checksum_sha256: sha256(text) });
        await app.put(body, text);
        app.double.fail({ when, fault });
        const answer = await app.complete(body.id);
        // Removing the pending object is tried again later; everything before it is told to the caller.
        expect(answer).toMatchObject(index === 3 ? { status: 200 } : { status: 503, body: { code: 'store_unavailable' } });
        expect(await app.complete(body.id)).toMatchObject({ status: 200, body: { state: 'complete' } });
        const read = await app.call<{ url: string }>('GET', `/v1/uploads/${body.id}?url=true`);
        expect(await (await fetch(read.body.url)).text()).toBe('hello, world');
      }
      app.clock.advance(7 * 3_600_000);
      await processUploads(database.db);
      expect(app.double.stored.keys().filter((key) => key.includes('/pending/'))).toEqual([]);
      const rows = await database.db.query<{ final_key: string }>(
        `select final_key from uploads where state = 'complete' and final_key like 'app/x/%'`,
      );
      const known = new Set(rows.map(({ final_key }) => final_key));
      expect(app.double.stored.keys().every((key) => known.has(key))).toBe(true);
    },
  );

  test('neither errors nor logs hold the credentials or a signature', async () => {
    await using app = await start();
    const { body } = await app.announce(text);
    app.double.fail({ when: () => true, fault: 'error', times: 50 });
    const answer = await app.complete(body.id);
    app.double.fail({ when: () => true, fault: 'reset', times: 50 });
    await app.complete(body.id);
    const written = JSON.stringify([answer.body, app.test.records]);
    expect(written).toContain('store_unavailable');
    for (const hidden of [app.double.key.secretAccessKey, app.double.key.accessKeyId, 'X-Amz-Signature', 'Signature='])
      expect(written).not.toContain(hidden);
  });

  test('a multipart upload that the store began and the client never heard of is aborted by the next clean-up', async () => {
    await using app = await start({ modules: [audit()] });
    app.double.fail({ when: ({ method, query }) => method === 'POST' && query.has('uploads'), fault: 'lost', times: 10 });
    expect(await app.announce(text, { multipart: true })).toMatchObject({ status: 503, body: { code: 'store_unavailable' } });
    expect(app.double.stored.multiparts.size).toBeGreaterThan(0);
    await processUploads(app.db);
    expect(app.double.stored.multiparts.size).toBe(0);
    const entries = await app.db.query<{ action: string }>('select action from audit_inbox order by id');
    expect(entries.map(({ action }) => action)).toEqual(['upload.created', 'upload.deleted']);
  });

  test('a multipart upload: parts in any order, interrupted, resumed, verified part by part', async () => {
    const MIB = 1024 * 1024;
    await using app = await start({ policy: { bytesMax: 100 * MIB, partBytes: 5 * MIB } });
    const file = Buffer.alloc(11 * MIB, 'abcdefg');
    const part = (number: number) => file.subarray((number - 1) * 5 * MIB, number * 5 * MIB);
    const sums = [1, 2, 3].map((number) => sha256(part(number)));
    const created = await app.announce(file, { multipart: true, part_checksums_sha256: sums.slice(0, 2) });
    const { id, multipart } = created.body;
    expect(multipart).toMatchObject({ part_size: 5 * MIB, part_count: 3, parts: [{ number: 1, size: 5 * MIB }, { number: 2 }] });
    const [first, second] = multipart?.parts ?? [];
    if (first === undefined || second === undefined) throw new Error('There are addresses for two parts.');
    expect((await app.put(second, part(2))).status).toBe(200);
    // Lies about a part are refused by the store.
    expect((await app.put(first, part(2))).status).toBe(400);
    expect((await app.put(first, part(3), { 'content-length': String(MIB) })).status).toBe(403);
    expect(await app.complete(id)).toMatchObject({ status: 409, body: { code: 'not_uploaded', missing_parts: [1, 3] } });

    app.clock.advance(500_000);
    type Parts = { parts: { number: number; url: string; headers: Record<string, string> }[]; uploaded: { number: number }[] };
    const resumed = await app.call<Parts>('POST', `/v1/uploads/${id}/parts`, {
      parts: [1, 3].map((number) => ({ number, checksum_sha256: sums[number - 1] })),
    });
    expect(resumed.body.uploaded).toEqual([{ number: 2, size: 5 * MIB, checksum_sha256: sums[1] }]);
    for (const address of resumed.body.parts) expect((await app.put(address, part(address.number))).status).toBe(200);
    const announced = sums.map((checksum_sha256, index) => ({ number: index + 1, checksum_sha256 }));
    expect(await app.complete(id, { parts: announced })).toMatchObject({ status: 200, body: { state: 'complete', size: 11 * MIB } });
    expect(app.double.stored.multiparts.size).toBe(0);
    const [key = ''] = app.double.stored.keys();
    expect(app.double.stored.objects.get(key)?.bytes.equals(file)).toBe(true);
    expect(await app.complete(id)).toMatchObject({ status: 200 });
  });

  test('multipart: wrong announcements, too many parts, expiry and an abort', async () => {
    const MIB = 1024 * 1024;
    await using app = await start({ policy: { bytesMax: 100 * MIB, partBytes: 5 * MIB } });
    const file = Buffer.alloc(6 * MIB, 1);
    const options = {
      multipart: true,
      content_type: 'application/octet-stream',
      part_checksums_sha256: [sha256(file.subarray(0, 5 * MIB)), sha256(file.subarray(5 * MIB))],
    };
    expect(await app.announce(file, { ...options, checksum_sha256: sha256(file) })).toMatchObject({ status: 422 });
    const { body } = await app.announce(file, options);
    const beyond = { parts: [{ number: 3, checksum_sha256: sha256(text) }] };
    expect(await app.call('POST', `/v1/uploads/${body.id}/parts`, beyond)).toMatchObject({ status: 422 });
    for (const address of body.multipart?.parts ?? [])
      await app.put(address, file.subarray((address.number - 1) * 5 * MIB, address.number * 5 * MIB));
    const lie = { parts: [{ number: 1, checksum_sha256: sha256(text) }] };
    expect(await app.complete(body.id, lie)).toMatchObject({ status: 422, body: { code: 'checksum_mismatch' } });
    expect(app.double.stored.multiparts.size).toBe(0);

    const expired = await app.announce(file, options);
    expect(app.double.stored.multiparts.size).toBe(1);
    app.clock.advance(1_501_000);
    expect(await app.call('POST', `/v1/uploads/${expired.body.id}/parts`, { parts: [] })).toMatchObject({ status: 410 });
    await processUploads(database.db);
    expect(app.double.stored.multiparts.size).toBe(0);
    const single = await app.announce(text);
    expect(await app.call('POST', `/v1/uploads/${single.body.id}/parts`, { parts: [] })).toMatchObject({
      status: 409,
      body: { code: 'not_multipart' },
    });
  });

  test('with jobs, one removes what is superfluous and another one waits until the URL has expired: neither fails on the way', async () => {
    await using app = await start({ modules: [jobs()] });
    const { body } = await app.announce(text);
    await app.put(body, text);
    expect(await app.complete(body.id)).toMatchObject({ status: 200, body: { state: 'complete' } });
    const isPending = (key: string) => key.includes('/pending/');
    expect(await runDueJobs(app.db)).toMatchObject({ succeeded: 1, retrying: 0, failed: 0 });
    expect(app.double.stored.keys().filter(isPending)).toEqual([]);
    expect((await app.put(body, text)).status).toBe(200);
    app.clock.advance(661_000);
    expect(await runDueJobs(app.db)).toMatchObject({ succeeded: 1, retrying: 0, failed: 0 });
    expect(app.double.stored.keys().filter(isPending)).toEqual([]);
    expect(await app.db.query('select outcome from job_attempts')).toEqual([]);
    expect(await app.db.query('select id from upload_removals')).toEqual([]);
  });

  test('a POST form instead of a PUT, where the store is asked for one', async () => {
    await using app = await start({}, { postPolicy: true });
    const { body } = await app.announce(text, { checksum_sha256: sha256(text) });
    const { method, url, fields } = body as unknown as { method: string; url: string; fields: Record<string, string> };
    expect(method).toBe('POST');
    const post = (bytes: Buffer) => {
      const form = new FormData();
      for (const [name, value] of Object.entries(fields)) form.set(name, value);
      form.set('file', new Blob([bytes]));
      return fetch(url, { method: 'POST', body: form });
    };
    expect((await post(Buffer.from('hello, there'))).status).toBe(400);
    expect((await post(Buffer.from('more than was announced'))).status).toBe(400);
    expect((await post(text)).status).toBe(204);
    expect(await app.complete(body.id)).toMatchObject({ status: 200 });
  });

  test('only objects under this installation’s prefix can be orphans', async () => {
    await using app = await start();
    const foreign = ['app/x/other-installation/final/ann/1/a.txt', 'app/xy/1', 'z'];
    for (const key of foreign)
      app.double.stored.put(key, { bytes: text, contentType: 'x/y', etag: 'e', sha256: null, modifiedAt: new Date(0) });
    app.clock.advance(10 * DAY_MS);
    expect(await findOrphans(database.db, 100)).toEqual([]);
  });
});

test('credentials from files are read again when they were replaced', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'kit-credentials-'));
  await using double = await s3Double();
  const [accessKeyIdFile, secretAccessKeyFile] = [join(folder, 'id'), join(folder, 'secret')];
  await writeFile(accessKeyIdFile, `${double.key.accessKeyId}\n`);
  const store = storeOf(double, { credentials: { accessKeyIdFile, secretAccessKeyFile } });
  const missing = store.head('x').catch((error: Error) => error.message);
  expect(await missing).toBe(
    `The upload store cannot be reached: HEAD object failed (The credentials file ${secretAccessKeyFile} cannot be read (ENOENT).).`,
  );
  await writeFile(secretAccessKeyFile, double.key.secretAccessKey);
  expect(await store.head('x')).toBeNull();
  await rm(folder, { recursive: true });
});

test('reads a range of what still has its etag, and says when it has not', async () => {
  await using double = await s3Double();
  const store = storeOf(double);
  const { etag } = double.stored.put('k', { bytes: text, contentType: 'text/plain', etag: 'e1', sha256: null, modifiedAt: new Date() });
  expect((await buffer(await store.read('k', { start: 7, end: 12, ifMatch: etag }))).toString()).toBe('world');
  await expect(store.read('k', { ifMatch: 'e2' })).rejects.toMatchObject({ code: 'upload_changed' });
});

test('faults of the options never show the credentials', () => {
  const wrong = { region: '', bucket: 'b', credentials: { accessKeyId: 'AKIA', secretAccessKey: '' }, buckets: 1 };
  expect(() => s3Store(wrong as never)).toThrow(
    /unknown option "buckets"[\s\S]*region is ""[\s\S]*credentials is not valid; use (?!.*AKIA)/,
  );
});
