import { mkdir, mkdtemp, open, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { RawConnection } from '../../../../test/raw-http.ts';
import { sha256, uploadApp } from '../../../../test/uploads/upload-app.ts';
import { describeDatabases } from '../../../testing/index.ts';
import { processUploads } from './clean.ts';
import { writeStream } from '../stores/write-stream.ts';

const text = Buffer.from('hello, world');

describeDatabases('hostile uploads', (database) => {
  const start = (options: Parameters<typeof uploadApp>[0] = {}) => uploadApp({ database: database.db, ...options });
  const complete = (app: Awaited<ReturnType<typeof start>>, id: string) => app.call('POST', `/v1/uploads/${id}/complete`);

  test.each(['../../../etc/cron.d/x', '..\\..\\x', '/etc/passwd', 'CON', 'a\u0007b', '%2e%2e%2fx', '.', 'x'.repeat(1000)])(
    'the name %j stays inside the folder',
    async (filename) => {
      await using app = await start();
      const { body } = await app.upload(text, { filename });
      expect(body).toMatchObject({ state: 'complete' });
      expect(await app.files()).toEqual([expect.stringMatching(/^[0-9a-f-]{36}\/final\/ann\/[0-9a-f]{32}\/[A-Za-z0-9][\w.-]{0,99}$/)]);
    },
  );

  test('types that are not accepted are 415, before anything is stored', async () => {
    await using app = await start({ policy: { contentTypes: ['image/*', 'application/pdf'] } });
    for (const content_type of ['text/html', 'image/svg+xml', 'application/x-sh', 'garbage'])
      expect(await app.announce(text, { content_type })).toMatchObject({
        status: 415,
        body: { code: 'type_not_allowed', allowed_types: ['image/*', 'application/pdf'] },
      });
    expect(await app.files()).toEqual([]);
  });

  test('422: what the schema refuses and what the policy refuses is reported at once, at its field', async () => {
    await using app = await start({ policy: { contentTypes: ['image/*'], bytesMax: 10, requireChecksum: true } });
    const faulty = { content_type: 'text/html', size: 11, checksum_sha256: null };
    const codes = ['type_not_allowed', 'upload_too_large', 'checksum_required'];
    for (const [more, expected] of [
      [{}, codes],
      [{ filename: '' }, ['too_small', ...codes]],
    ] as const) {
      const answer = await app.announce(text, { ...faulty, ...more });
      const body = answer.body as unknown as { code: string; errors?: { code: string }[] };
      expect([answer.status, body.code, body.errors?.map((error) => error.code)]).toEqual([422, 'validation_error', expected]);
    }
  });

  test('a program that says it is an image is rejected, and nothing of it stays', async () => {
    await using app = await start();
    for (const [content_type, bytes] of [
      ['image/png', Buffer.from('MZ\u0090\0\u0003')],
      ['image/jpeg', Buffer.from('<script>alert(1)</script>')],
      ['application/pdf', gzipSync('x')],
    ] as const) {
      const { body } = await app.announce(bytes, { content_type });
      await app.send(body, bytes);
      expect(await complete(app, body.id)).toMatchObject({ status: 422, body: { code: 'upload_mismatch' } });
      expect(await app.call('GET', `/v1/uploads/${body.id}`)).toMatchObject({ body: { state: 'rejected' } });
      expect(await app.call('GET', `/v1/uploads/${body.id}?url=true`)).toMatchObject({ status: 409, body: { code: 'not_ready' } });
    }
    expect(await app.files()).toEqual([]);
  });

  test('a file that is two things is served as the one it was announced as, and can run nowhere', async () => {
    await using app = await start();
    const polyglot = Buffer.concat([
      Buffer.from('GIF89a/*'),
      Buffer.alloc(6),
      Buffer.from('*/=1;alert(document.domain)//<script>alert(1)</script>'),
    ]);
    const { body } = await app.upload(polyglot, { content_type: 'image/gif', filename: 'x.gif' });
    const read = await app.call<{ url: string }>('GET', `/v1/uploads/${body.id}?url=true`);
    expect((await app.call('GET', read.body.url, undefined, {})).headers).toMatchObject({
      'content-type': 'image/gif',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "sandbox; default-src 'none'",
    });
    const script = await app.announce(polyglot, { content_type: 'text/javascript' });
    await app.send(script.body, polyglot);
    expect(await complete(app, script.body.id)).toMatchObject({ status: 422 });
  });

  test('more or fewer bytes than announced are refused, and leave nothing', async () => {
    await using app = await start({ policy: { bytesMax: 1000 } });
    expect(await app.announce(Buffer.alloc(1001))).toMatchObject({ status: 413, body: { code: 'upload_too_large', bytes_max: 1000 } });
    for (const size of [-1, 1.5, 2 ** 60]) expect((await app.announce(text, { size })).status).toBeGreaterThanOrEqual(413);
    const { body } = await app.announce(text);
    expect(await app.send(body, Buffer.from('hello, world!'), { 'content-length': '13' })).toMatchObject({ status: 413 });
    expect(await app.send(body, Buffer.from('hello'), { 'content-length': '5' })).toMatchObject({ status: 422 });
    // Without a length the bytes are counted as they come.
    const address = await app.test.listen();
    const chunked = (bytes: string) =>
      new Promise<number>((resolve, reject) => {
        const request = httpRequest(`${address}${body.url}`, {
          method: 'PUT',
          headers: { 'content-type': 'text/plain', 'transfer-encoding': 'chunked' },
        });
        request.on('response', (response) => resolve(response.statusCode ?? 0)).on('error', reject);
        request.end(bytes);
      });
    expect(await chunked('hello, world!')).toBe(413);
    expect(await chunked('hello')).toBe(422);
    expect(await app.files()).toEqual([]);
    expect(await chunked('hello, world')).toBe(204);
    expect(await complete(app, body.id)).toMatchObject({ status: 200 });
  });

  test('another content than the checksum says is refused', async () => {
    await using app = await start({ policy: { requireChecksum: true } });
    expect(await app.announce(text)).toMatchObject({ status: 422, body: { code: 'checksum_required' } });
    expect(await app.announce(text, { checksum_sha256: 'nonsense' })).toMatchObject({ status: 422, body: { code: 'validation_error' } });
    const { body } = await app.announce(text, { checksum_sha256: sha256(text) });
    expect(await app.send(body, Buffer.from('hello, there'))).toMatchObject({ status: 422, body: { code: 'checksum_mismatch' } });
    expect(await app.files()).toEqual([]);
    expect(await app.send(body, text)).toMatchObject({ status: 204 });
    expect(await complete(app, body.id)).toMatchObject({ status: 200 });
  });

  test('bytes that change on the disk before completion are rejected', async () => {
    await using app = await start();
    const { body } = await app.announce(text, { checksum_sha256: sha256(text) });
    await app.send(body, text);
    await writeFile(join(app.folder, (await app.files())[0] ?? ''), 'hello, there');
    expect(await complete(app, body.id)).toMatchObject({ status: 422, body: { code: 'checksum_mismatch' } });
  });

  test('altered addresses are refused before a byte is read', async () => {
    await using app = await start();
    const { body } = await app.announce(text, { checksum_sha256: sha256(text) });
    const other = await app.announce(text, { checksum_sha256: sha256(text) });
    const alterations = [
      body.url.replace('length=12', 'length=13'),
      body.url.replace(/expires=\d+/, 'expires=9999999999'),
      body.url.replace('text%2Fplain', 'text%2Fhtml'),
      body.url.replace(/sha256=[^&]+&/, ''),
      body.url.replace(body.id, other.body.id),
      body.url.replace(/signature=.+$/, 'signature='),
      body.url.replace(/&signature=.+$/, ''),
      body.url.split('?')[0] ?? '',
      `${body.url}&part=1`,
    ];
    for (const url of alterations)
      expect(await app.send({ ...body, url }, text)).toMatchObject({ status: 403, body: { code: 'invalid_upload_url' } });
    // An upload address is no download address, nor the other way round.
    expect(await app.call('GET', body.url, undefined, {})).toMatchObject({ status: 403 });
    expect(await app.send(body, text, { 'content-type': 'text/html' })).toMatchObject({ status: 422 });
    expect(await app.files()).toEqual([]);
  });

  test('a client that stops in the middle leaves nothing, and may start again', async () => {
    await using app = await start();
    const { body } = await app.announce(text);
    const address = await app.test.listen();
    const connection = await RawConnection.open(address);
    connection.send(`PUT ${body.url} HTTP/1.1\r\nhost: x\r\ncontent-type: text/plain\r\ncontent-length: 12\r\n\r\nhello`);
    await expect.poll(() => app.files(), { timeout: 300_000 }).toEqual([expect.stringMatching(/\.tmp$/)]);
    expect(await complete(app, body.id)).toMatchObject({ status: 409, body: { code: 'not_uploaded' } });
    connection.socket.destroy();
    await expect.poll(() => app.files(), { timeout: 300_000 }).toEqual([]);
    expect(await app.send(body, text)).toMatchObject({ status: 204 });
  });

  test('archives that would grow without end are stored as they are', async () => {
    await using app = await start();
    const bomb = gzipSync(Buffer.alloc(50 * 1024 * 1024));
    const { body } = await app.upload(bomb, { content_type: 'application/gzip', filename: 'bomb.gz' });
    expect(body).toMatchObject({ state: 'complete', size: bomb.length });
    expect(await readFile(join(app.folder, (await app.files())[0] ?? ''))).toEqual(bomb);
  });

  test('with 10,000 uploads pending an owner gets no more; others do', async () => {
    await using app = await start({ policy: { quotaPerOwner: { count: 10_000 } } });
    await app.db.query('delete from uploads');
    const { body } = await app.announce(text);
    await app.db.query(
      `insert into uploads (id, owner_id, tenant_key, state, filename, content_type, size, pending_key, created_at, expires_at, complete_by, scan_attempts)
       ${app.db.dialect === 'sqlite' ? `with recursive n(i) as (select 1 union all select i + 1 from n where i < 9999)` : ''}
       select ${app.db.dialect === 'sqlite' ? `lower(printf('%08x-0000-7000-8000-000000000000', i))` : `cast(lpad(to_hex(i), 8, '0') || '-0000-7000-8000-000000000000' as uuid)`},
         owner_id, tenant_key, state, filename, content_type, size, 'many/' || i, created_at, expires_at, complete_by, 0
       from ${app.db.dialect === 'sqlite' ? 'n' : 'generate_series(1, 9999) as n(i)'}, uploads where uploads.id = $1`,
      [body.id],
    );
    expect(await app.announce(text)).toMatchObject({
      status: 409,
      body: { code: 'quota_exceeded', limit: 'count', max: 10_000, used: 10_000 },
    });
    expect(await app.announce(text, {}, { 'x-user': 'bob' })).toMatchObject({ status: 201 });
    app.clock.advance(3_600_000);
    expect(await processUploads(app.db, { limit: 300 })).toMatchObject({ expired: 300 });
    expect(await app.announce(text)).toMatchObject({ status: 201 });
    await app.db.query('delete from uploads');
  });

  test('of twenty announcements at once, exactly those within the quota are taken', async () => {
    await using app = await start({ policy: { quotaPerOwner: { bytes: 60, count: 100 } } });
    const as = { 'x-user': `quota-${database.dialect}` };
    const answers = await Promise.all(Array.from({ length: 20 }, () => app.announce(text, {}, as)));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(5);
    expect(answers.filter(({ body }) => (body as { code?: string }).code === 'quota_exceeded')).toHaveLength(15);
  });

  test('symbolic links in the folder are not followed', async () => {
    const outside = await mkdtemp(join(tmpdir(), 'kit-outside-'));
    await using app = await start();
    const { body } = await app.upload(text);
    const [file = ''] = await app.files();
    await writeFile(join(outside, 'secret.txt'), 'hello, world');
    // The file itself.
    await rm(join(app.folder, file));
    await symlink(join(outside, 'secret.txt'), join(app.folder, file));
    expect(await app.call('GET', `/v1/uploads/${body.id}?url=true`)).toMatchObject({ status: 503, body: { code: 'store_unavailable' } });
    // A folder on the way to it.
    const pending = join(app.folder, file.split('/')[0] ?? '', 'pending', 'eve');
    await mkdir(dirname(pending), { recursive: true });
    await symlink(outside, pending);
    const created = await app.announce(text, {}, { 'x-user': 'eve' });
    expect(await app.send(created.body, text)).toMatchObject({ status: 503, body: { code: 'store_unavailable' } });
    expect(await readdir(outside)).toEqual(['secret.txt']);
    const answers = JSON.stringify([created.body, (await app.send(created.body, text)).body]);
    expect(answers).not.toContain(app.folder);
    await rm(outside, { recursive: true });
  });

  test('a folder that cannot be used is 503, and the next try succeeds', async () => {
    await using app = await start();
    const { body } = await app.announce(text);
    const blocked = join(app.folder, 'blocked');
    await app.send(body, text);
    const [file = ''] = await app.files();
    const place = join(app.folder, file.split('/')[0] ?? '', 'final');
    await writeFile(place, 'a file where a folder should be');
    expect(await complete(app, body.id)).toMatchObject({ status: 503, body: { code: 'store_unavailable' } });
    await rm(place);
    expect(await complete(app, body.id)).toMatchObject({ status: 200 });
    expect(blocked).not.toBe(place);
  });

  test('ten completions at once are one', async () => {
    await using app = await start();
    const { body } = await app.announce(text);
    await app.send(body, text);
    const answers = await Promise.all(Array.from({ length: 10 }, () => complete(app, body.id)));
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 200));
    expect(new Set(answers.map(({ body: { completed_at } }) => completed_at)).size).toBe(1);
    expect(await app.files()).toHaveLength(1);
  });

  test('completion and clean-up at once: one of them wins, and the files agree with it', async () => {
    await using app = await start({ policy: { expiresInSeconds: 60, graceSeconds: 1 } });
    for (let round = 0; round < 8; round += 1) {
      const { body } = await app.announce(text);
      await app.send(body, text);
      const before = (await app.files()).length;
      app.clock.advance(60_500);
      const completing = complete(app, body.id);
      app.clock.advance(1000);
      const [answer] = await Promise.all([completing, processUploads(app.db)]);
      const { state } = (await app.call('GET', `/v1/uploads/${body.id}`)).body;
      expect([answer.status, state]).toEqual(answer.status === 200 ? [200, 'complete'] : [410, 'expired']);
      await processUploads(app.db);
      expect(await app.files()).toHaveLength(answer.status === 200 ? before : before - 1);
    }
  });

  test('deletion and completion at once leave no file without a row and no row without its file', async () => {
    await using app = await start();
    for (let round = 0; round < 8; round += 1) {
      const { body } = await app.announce(text);
      await app.send(body, text);
      const [completed, removed] = await Promise.all([complete(app, body.id), app.call('DELETE', `/v1/uploads/${body.id}`)]);
      expect(removed.status).toBe(204);
      expect([200, 404]).toContain(completed.status);
      await processUploads(app.db);
      expect(await app.files()).toEqual([]);
    }
  });

  test('a file whose process ended between taking the address and naming the file can be sent again, once', async () => {
    await using app = await start();
    const { body } = await app.announce(text);
    await app.db.query('update uploads set received_at = $1 where id = $2', [app.clock.now(), body.id]);
    app.clock.advance(1000);
    const answers = await Promise.all([app.send(body, text), app.send(body, text), app.send(body, text)]);
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([204, 409, 409]);
    expect(await app.send(body, text)).toMatchObject({ status: 409, body: { code: 'upload_url_used' } });
    expect(await complete(app, body.id)).toMatchObject({ status: 200, body: { state: 'complete' } });
    expect(await app.send(body, text)).toMatchObject({ status: 409, body: { code: 'upload_url_used' } });
  });

  test('completed by several requests at the same moment, a multipart upload is complete for all of them, and nothing else is left', async () => {
    await using app = await start({ policy: { partBytes: 5 * 1024 * 1024 } });
    const pieces = [Buffer.alloc(5 * 1024 * 1024, 'a'), Buffer.alloc(1024 * 1024, 'b')];
    const file = Buffer.concat(pieces);
    for (let round = 0; round < 3; round++) {
      const { body } = await app.announce(file, { multipart: true, part_checksums_sha256: pieces.map(sha256) });
      for (const [index, part] of (body.multipart?.parts ?? []).entries()) await app.send(part, pieces[index] ?? Buffer.alloc(0));
      const attempts = Array.from({ length: 6 }, async (_, index) => {
        await pause(5 * index);
        return complete(app, body.id);
      });
      for (const answer of await Promise.all(attempts)) expect(answer).toMatchObject({ status: 200, body: { state: 'complete' } });
      const { url } = (await app.call<{ url: string }>('GET', `/v1/uploads/${body.id}?url=true`)).body;
      expect((await app.call('GET', url)).bytes.equals(file)).toBe(true);
    }
    await processUploads(app.db);
    expect((await app.files()).map((name) => name.split('/')[1])).toEqual(['final', 'final', 'final']);
  });

  test('a part number that the upload does not have is a mistake of the request: 422 at its place, and nothing that was sent is lost', async () => {
    await using app = await uploadApp({ database: database.db, policy: { partBytes: 5 * 1024 * 1024 } });
    const file = Buffer.alloc(5 * 1024 * 1024 + 1, 'a');
    const pieces = [file.subarray(0, 5 * 1024 * 1024), file.subarray(5 * 1024 * 1024)];
    const { body } = await app.announce(file, { multipart: true, part_checksums_sha256: pieces.map(sha256) });
    for (const [index, part] of (body.multipart?.parts ?? []).entries())
      expect(await app.send(part, pieces[index] ?? Buffer.alloc(0))).toMatchObject({ status: 204 });
    const named = (number: number) => ({ number, checksum_sha256: sha256(pieces[1] ?? Buffer.alloc(0)) });
    for (const path of ['complete', 'parts'])
      for (const [number, code] of [
        [3, 'out_of_range'],
        [0, 'too_small'],
      ] as const)
        expect(await app.call('POST', `/v1/uploads/${body.id}/${path}`, { parts: [named(2), named(number)] })).toMatchObject({
          status: 422,
          body: { code: 'validation_error', errors: [{ location: ['body', 'parts', 1, 'number'], code }] },
        });
    expect(await app.call('POST', `/v1/uploads/${body.id}/complete`, { parts: [named(2)] })).toMatchObject({
      status: 200,
      body: { state: 'complete' },
    });
  });
});

test('a full disk is storage_full', async () => {
  // Linux answers every write to it with ENOSPC.
  const handle = await open('/dev/full', 'w');
  const { storeFault } = await import('../stores/disk-faults.ts');
  const failure: unknown = await writeStream(Readable.from([Buffer.from('x')]), handle, { length: 1, sha256: null }).catch(
    (error: unknown) => storeFault(error),
  );
  await handle.close();
  expect(failure).toMatchObject({ code: 'storage_full', status: 503 });
});
