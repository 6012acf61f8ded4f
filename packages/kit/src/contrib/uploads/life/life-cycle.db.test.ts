import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sha256, uploadApp } from '../../../../test/uploads/upload-app.ts';
import { describeDatabases } from '../../../testing/index.ts';
import { processUploads } from './clean.ts';

const text = Buffer.from('hello, world');
const png = Buffer.concat([Buffer.from('\u0089PNG\r\n\u001a\n', 'latin1'), Buffer.from('\0\0\0\rIHDR', 'latin1'), Buffer.alloc(40, 1)]);

describeDatabases('the life of an upload', (database) => {
  const start = (options: Parameters<typeof uploadApp>[0] = {}) => uploadApp({ database: database.db, ...options });

  test('announce, send, complete, fetch: the same bytes come back, and no part of them lies anywhere else', async () => {
    await using app = await start();
    const created = await app.announce(text, { filename: '../Grüße.txt', checksum_sha256: sha256(text) });
    expect(created).toMatchObject({
      status: 201,
      headers: { 'cache-control': 'no-store' },
      body: {
        state: 'pending',
        filename: 'Grüße.txt',
        content_type: 'text/plain',
        size: 12,
        checksum_sha256: sha256(text),
        method: 'PUT',
        headers: { 'content-length': '12', 'content-type': 'text/plain' },
        completed_at: null,
      },
    });
    expect(await app.send(created.body, text)).toMatchObject({ status: 204 });
    const { id } = created.body;
    expect(await app.call('POST', `/v1/uploads/${id}/complete`)).toMatchObject({ status: 200, body: { state: 'complete' } });
    const files = await app.files();
    expect(files).toEqual([expect.stringMatching(/^[0-9a-f-]{36}\/final\/ann\/[0-9a-f]{32}\/Gru_e\.txt$/)]);
    expect(await readFile(join(app.folder, files[0] ?? ''))).toEqual(text);

    const read = await app.call<{ url: string }>('GET', `/v1/uploads/${id}?url=true`);
    expect(read).toMatchObject({ status: 200, body: { id, state: 'complete' } });
    const fetched = await app.call('GET', read.body.url, undefined, {});
    expect(fetched.bytes).toEqual(text);
    expect(fetched.headers).toMatchObject({
      'content-type': 'text/plain',
      'content-length': '12',
      'content-disposition': `attachment; filename="Gru_e.txt"; filename*=UTF-8''Gr%C3%BC%C3%9Fe.txt`,
      'x-content-type-options': 'nosniff',
      'content-security-policy': "sandbox; default-src 'none'",
    });
    const part = await app.call('GET', read.body.url, undefined, { range: 'bytes=7-' });
    expect(part).toMatchObject({ status: 206, headers: { 'content-range': 'bytes 7-11/12' }, bytes: Buffer.from('world') });
    const ranged = (range: string, more = {}) => app.call('GET', read.body.url, undefined, { range, ...more });
    expect(await ranged('bytes=-5')).toMatchObject({
      status: 206,
      headers: { 'content-range': 'bytes 7-11/12', 'content-length': '5' },
      bytes: Buffer.from('world'),
    });
    expect(await ranged('bytes=-500')).toMatchObject({ status: 206, headers: { 'content-range': 'bytes 0-11/12' }, bytes: text });
    expect(await ranged('bytes=11-500')).toMatchObject({ status: 206, headers: { 'content-range': 'bytes 11-11/12' } });
    // Clients that do not know the length ask for the largest number they have.
    for (const open of ['bytes=7-18446744073709551615', 'Bytes=7-'])
      expect(await ranged(open)).toMatchObject({ status: 206, headers: { 'content-range': 'bytes 7-11/12' } });
    for (const beyond of ['bytes=12-', 'bytes=-0', 'bytes=18446744073709551615-'])
      expect(await ranged(beyond)).toMatchObject({
        status: 416,
        headers: { 'content-range': 'bytes */12' },
        body: { code: 'range_not_satisfiable' },
      });
    // Several ranges, other units, what is not a range, and a condition that cannot be decided: the whole file.
    for (const range of ['bytes=0-1,3-4', 'lines=1-2', 'bytes=5-2', 'bytes=-'])
      expect([range, await ranged(range)]).toMatchObject([range, { status: 200, bytes: text }]);
    expect(await ranged('bytes=7-', { 'if-range': '"x"' })).toMatchObject({ status: 200, bytes: text });
    // Of HEAD there are no ranges.
    for (const range of ['bytes=7-', 'bytes=12-'])
      expect(await app.call('HEAD', read.body.url, undefined, { range })).toMatchObject({
        status: 200,
        headers: { 'content-length': '12' },
      });

    expect(await app.call('DELETE', `/v1/uploads/${id}`)).toMatchObject({ status: 204 });
    expect(await app.call('GET', `/v1/uploads/${id}`)).toMatchObject({ status: 404, body: { code: 'upload_not_found' } });
    expect(await app.files()).toEqual([]);
    expect(await app.call('GET', read.body.url, undefined, {})).toMatchObject({ status: 404 });
  });

  test('raster images are shown inline, everything else is a file to save', async () => {
    await using app = await start();
    const image = await app.upload(png, { filename: 'a.png', content_type: 'image/png' });
    const { body } = await app.call<{ url: string }>('GET', `/v1/uploads/${image.body.id}?url=true`);
    expect((await app.call('GET', body.url, undefined, {})).headers).toMatchObject({
      'content-disposition': expect.stringMatching(/^inline;/),
    });
    const svg = await app.upload(Buffer.from('<svg xmlns="x"><script>1</script></svg>'), {
      filename: 'a.svg',
      content_type: 'image/svg+xml',
    });
    const other = await app.call<{ url: string }>('GET', `/v1/uploads/${svg.body.id}?url=true`);
    expect((await app.call('GET', other.body.url, undefined, {})).headers).toMatchObject({
      'content-disposition': expect.stringMatching(/^attachment;/),
    });
    // The disposition is part of what is signed.
    expect(await app.call('GET', other.body.url.replace('attachment', 'inline'), undefined, {})).toMatchObject({ status: 403 });
  });

  test('completing is repeatable, and what is not complete cannot be fetched', async () => {
    await using app = await start();
    const { body } = await app.announce(text);
    expect(await app.call('GET', `/v1/uploads/${body.id}?url=true`)).toMatchObject({
      status: 409,
      body: { code: 'not_ready', state: 'pending' },
    });
    expect(await app.call('POST', `/v1/uploads/${body.id}/complete`)).toMatchObject({ status: 409, body: { code: 'not_uploaded' } });
    await app.send(body, text);
    const first = await app.call('POST', `/v1/uploads/${body.id}/complete`);
    expect(await app.call('POST', `/v1/uploads/${body.id}/complete`, {})).toEqual({ ...first, headers: expect.anything() });
  });

  test('an address works once', async () => {
    await using app = await start();
    const { body } = await app.announce(text);
    expect(await app.send(body, text)).toMatchObject({ status: 204 });
    expect(await app.send(body, text)).toMatchObject({ status: 409, body: { code: 'upload_url_used' } });
    await app.call('POST', `/v1/uploads/${body.id}/complete`);
    expect(await app.send(body, text)).toMatchObject({ status: 409, body: { code: 'upload_url_used' } });
    expect(await app.files()).toHaveLength(1);
  });

  test('of ten who use one address at once, one is taken', async () => {
    await using app = await start();
    const { body } = await app.announce(text);
    const sent = await Promise.all(Array.from({ length: 10 }, () => app.send(body, text)));
    expect(sent.filter(({ status }) => status === 204)).toHaveLength(1);
    expect(await app.files()).toHaveLength(1);
  });

  test('an expired address is 410, and an expired upload cannot be completed', async () => {
    await using app = await start({ policy: { expiresInSeconds: 60, graceSeconds: 30 } });
    const { body } = await app.announce(text);
    const sent = await app.announce(text);
    await app.send(sent.body, text);
    app.clock.advance(61_000);
    expect(await app.send(body, text)).toMatchObject({ status: 410, body: { code: 'upload_url_expired' } });
    expect(await app.call('POST', `/v1/uploads/${sent.body.id}/complete`)).toMatchObject({ status: 200 });
    app.clock.advance(30_000);
    expect(await app.call('POST', `/v1/uploads/${body.id}/complete`)).toMatchObject({ status: 410, body: { code: 'upload_expired' } });
    expect(await processUploads(app.db)).toMatchObject({ expired: 1 });
    expect(await app.call('GET', `/v1/uploads/${body.id}`)).toMatchObject({ body: { state: 'expired' } });
    expect(await app.call('POST', `/v1/uploads/${body.id}/complete`)).toMatchObject({ status: 410 });
  });

  test('another owner’s upload is exactly as missing as one that never was', async () => {
    await using app = await start();
    const { body } = await app.upload(text);
    const as = { 'x-user': 'bob' };
    const missing = '01900000-0000-7000-8000-000000000000';
    for (const [method, path] of [
      ['GET', ''],
      ['GET', '?url=true'],
      ['POST', '/complete'],
      ['POST', '/parts'],
      ['DELETE', ''],
    ] as const) {
      // prettier-ignore
      const payload = path === '/parts' ? { parts: [] } : undefined;
      const foreign = await app.call(method, `/v1/uploads/${body.id}${path}`, payload, as);
      const unknown = await app.call(method, `/v1/uploads/${missing}${path}`, payload, as);
      expect(foreign.status).toBe(404);
      expect({ ...foreign.body, request_id: '', instance: '' }).toEqual({ ...unknown.body, request_id: '', instance: '' });
    }
    expect(await app.call('GET', `/v1/uploads/${body.id}`)).toMatchObject({ status: 200 });
  });

  test('keys need the scope of the route, and anonymous callers get nothing', async () => {
    await using app = await start();
    const { body } = await app.upload(text);
    const read = { 'x-user': 'ann', 'x-scopes': 'uploads:read' };
    expect(await app.call('GET', `/v1/uploads/${body.id}`, undefined, read)).toMatchObject({ status: 200 });
    expect(await app.announce(text, {}, read)).toMatchObject({ status: 403, body: { code: 'insufficient_scope' } });
    expect(await app.announce(text, {}, { 'x-user': 'ann', 'x-scopes': 'uploads:write' })).toMatchObject({ status: 201 });
    expect(await app.announce(text, {}, {})).toMatchObject({ status: 401 });
  });

  test('a tenant’s uploads are out of reach for its owner in another tenant', async () => {
    await using app = await start({ app: { tenant: ({ headers }) => (headers['x-tenant'] as string | undefined) ?? null } });
    const created = await app.announce(text, {}, { 'x-user': 'ann', 'x-tenant': 'a' });
    expect(await app.call('GET', `/v1/uploads/${created.body.id}`, undefined, { 'x-user': 'ann', 'x-tenant': 'a' })).toMatchObject({
      status: 200,
    });
    expect(await app.call('GET', `/v1/uploads/${created.body.id}`, undefined, { 'x-user': 'ann', 'x-tenant': 'b' })).toMatchObject({
      status: 404,
    });
    expect(await app.call('GET', `/v1/uploads/${created.body.id}`)).toMatchObject({ status: 404 });
  });

  test('what was changed in the store after completion is not handed out', async () => {
    await using app = await start();
    const { body } = await app.upload(text);
    const read = await app.call<{ url: string }>('GET', `/v1/uploads/${body.id}?url=true`);
    await writeFile(join(app.folder, (await app.files())[0] ?? ''), 'other words!');
    expect(await app.call('GET', `/v1/uploads/${body.id}?url=true`)).toMatchObject({ status: 409, body: { code: 'upload_changed' } });
    expect(await app.call('GET', read.body.url, undefined, {})).toMatchObject({ status: 409, body: { code: 'upload_changed' } });
  });

  test('the installation id is made once and kept', async () => {
    await using first = await start();
    await first.upload(text);
    await using second = await start({ folder: first.folder, database: await database.open() });
    await second.upload(text);
    const prefixes = new Set((await first.files()).map((file) => file.split('/')[0]));
    expect(prefixes.size).toBe(1);
  });

  test('rejections do not tell where things are stored', async () => {
    await using app = await start();
    const { body } = await app.announce(text, { content_type: 'image/png', filename: 'x.png' });
    await app.send(body, text);
    const answer = await app.call('POST', `/v1/uploads/${body.id}/complete`);
    expect(answer).toMatchObject({ status: 422, body: { code: 'upload_mismatch', detail: 'The content is not image/png.' } });
    const shown = JSON.stringify([answer.body, (await app.call('GET', `/v1/uploads/${body.id}`)).body]);
    for (const hidden of [app.folder, 'pending/', 'final/', 'etag']) expect(shown).not.toContain(hidden);
  });
});
