import { wholeDocument } from '../../../test/whole-document.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { RawConnection } from '../../../test/raw-http.ts';
import { createApp } from '../../app/assemble/create-app.ts';
import type { App } from '../../app/declare/module.ts';
import { openApiDocument } from '../../openapi/document.ts';
import { allowAny } from '../../permissions/index.ts';
import { Controller } from '../compile/controller.ts';
import { filePart, multipart } from './multipart.ts';
import { route } from '../declare/route.ts';

class FormController extends Controller {
  static override readonly throttles = [];
  form = route.post(
    '/form',
    {
      body: multipart(
        {
          file: filePart({ bytesMax: 1000, mediaTypes: ['text/*'] }),
          picture: filePart({ optional: true }),
          title: z.string().min(1),
          count: z.int().optional(),
          tags: z.array(z.string()).optional(),
        },
        { bytesMax: 20_000 },
      ),
      response: z.object({
        file: z.string(),
        name: z.string(),
        type: z.string(),
        title: z.string(),
        count: z.int().nullable(),
        tags: z.array(z.string()),
        picture: z.int(),
      }),
      permission: allowAny,
    },
    ({ body }) => ({
      file: body.file.bytes.toString(),
      name: body.file.name,
      type: body.file.mediaType,
      title: body.title,
      count: body.count ?? null,
      tags: body.tags ?? [],
      picture: body.picture?.bytes.length ?? -1,
    }),
  );
}

let app: App;
let address: string;
beforeAll(async () => {
  app = createApp({ database: 'sqlite::memory:', mount: { '/v1': { '/x': FormController } }, log: { level: 'silent' } });
  address = await app.listen({ port: 0 });
});
afterAll(() => app.close());

async function send(fill: (form: FormData) => void) {
  const form = new FormData();
  fill(form);
  const response = await fetch(`${address}/v1/x/form`, { method: 'POST', body: form });
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at whatever the server answered
  return { status: response.status, body: (await response.json()) as any };
}
const csv = (text = 'a,b') => new Blob([text], { type: 'text/csv' });

test('a form gives the handler its files and its fields as their schemas say', async () => {
  const { status, body } = await send((form) => {
    form.append('file', csv('a,é'), 'people ü.csv');
    form.append('title', 'all');
    form.append('count', '3');
    form.append('tags', 'x');
    form.append('tags', 'y');
    form.append('picture', new Blob([new Uint8Array(5000)]), 'p.png');
  });
  expect([status, body]).toEqual([
    200,
    { file: 'a,é', name: 'people ü.csv', type: 'text/csv', title: 'all', count: 3, tags: ['x', 'y'], picture: 5000 },
  ]);
});

test('every fault comes at once with the name of its part', async () => {
  const { status, body } = await send((form) => {
    form.append('file', new Blob(['x'], { type: 'image/png' }), 'x.png');
    form.append('count', 'three');
    form.append('__proto__', 'x');
    form.append('titel', 'x');
  });
  expect(status).toBe(422);
  const faults = (body.errors as { location: unknown[]; code: string }[]).map(({ location, code }) => `${location.join('.')} ${code}`);
  expect(faults.sort()).toEqual(
    [
      'body.__proto__ unknown_field',
      'body.count invalid_type',
      'body.file invalid',
      'body.title required',
      'body.titel unknown_field',
    ].sort(),
  );
});

test('a second file of the same name is refused, also when both arrive at once', async () => {
  const { status, body } = await send((form) => {
    form.append('file', csv('first'), 'a.csv');
    form.append('file', csv('second'), 'b.csv');
    form.append('title', 'all');
  });
  expect([status, body.errors]).toEqual([422, [{ location: ['body', 'file'], code: 'duplicate', message: 'Send one file.' }]]);
});

test('text where a file belongs, and a file where text belongs, are told apart from unknown parts', async () => {
  const { status, body } = await send((form) => {
    form.append('file', 'a,b');
    form.append('title', csv('all'), 'title.csv');
  });
  const faults = (body.errors as { location: unknown[]; code: string }[]).map(({ location, code }) => `${location.join('.')} ${code}`);
  expect([status, faults.sort()]).toEqual([422, ['body.file invalid_type', 'body.title invalid_type']]);
});

test('a file over its limit, and a form over the limit of the body, are 413', async () => {
  const large = await send((form) => form.append('file', csv('x'.repeat(1001)), 'x.csv'));
  expect([large.status, large.body.bytes_max]).toEqual([413, 1000]);
  const whole = await send((form) => form.append('picture', new Blob([new Uint8Array(30_000)]), 'x.png'));
  expect([whole.status, whole.body.bytes_max]).toEqual([413, 20_000]);
});

test('the limit holds while the body arrives: the answer comes before the rest was sent', async () => {
  await using connection = await RawConnection.open(address);
  connection.send(
    'POST /v1/x/form HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=B\r\nTransfer-Encoding: chunked\r\n\r\n',
    ...chunk('--B\r\nContent-Disposition: form-data; name="file"; filename="x.csv"\r\nContent-Type: text/csv\r\n\r\n'),
    ...chunk('x'.repeat(1100)),
  );
  expect((await connection.answer()).status).toBe(413);
});

test('a form that ends too early, has no boundary or too many parts is 400', async () => {
  const post = async (type: string, body: string) =>
    (await fetch(`${address}/v1/x/form`, { method: 'POST', headers: { 'content-type': type }, body })).status;
  expect(await post('multipart/form-data; boundary=B', '--B\r\nContent-Disposition: form-data; name="title"\r\n\r\nx')).toBe(400);
  expect(await post('multipart/form-data', 'x')).toBe(400);
  const { status } = await send((form) => {
    for (let index = 0; index < 150; index += 1) form.append('title', 'x');
  });
  expect(status).toBe(400);
  expect(await post('text/csv', 'a,b')).toBe(415);
});

test('a part without a name is 400, and the process goes on', async () => {
  const post = async (...parts: readonly string[]) => {
    const body = [...parts.map((part) => `--B\r\n${part}\r\n`), '--B--\r\n'].join('');
    const headers = { 'content-type': 'multipart/form-data; boundary=B' };
    const response = await fetch(`${address}/v1/x/form`, { method: 'POST', headers, body });
    return [response.status, ((await response.json()) as { detail: string }).detail];
  };
  const title = 'Content-Disposition: form-data; name="title"\r\n\r\nall';
  for (const disposition of ['form-data', 'form-data; filename="x.csv"', 'form-data; NAMES="title"']) {
    const unnamed = `Content-Disposition: ${disposition}\r\n\r\nx`;
    for (const parts of [[unnamed], [unnamed, title], [title, unnamed]])
      expect([disposition, ...(await post(...parts))]).toEqual([disposition, 400, 'The form has a part without a name.']);
  }
  expect((await send((form) => form.append('file', csv(), 'x.csv'))).status).toBe(422);
});

test('text that no database can store is refused in fields and file names', async () => {
  const { status, body } = await send((form) => {
    form.append('file', csv(), 'x.csv');
    form.append('title', 'a\0b');
    form.append('tags', '\0');
  });
  const faults = (body.errors as { location: unknown[]; code: string }[]).map(({ location, code }) => `${location.join('.')} ${code}`);
  expect([status, faults.sort()]).toEqual([422, ['body.tags invalid', 'body.title invalid']]);
  const name = '--B\r\nContent-Disposition: form-data; name="picture"; filename="a\0.png"\r\n\r\nx\r\n--B--\r\n';
  const headers = { 'content-type': 'multipart/form-data; boundary=B' };
  const response = await fetch(`${address}/v1/x/form`, { method: 'POST', headers, body: name });
  const { errors } = (await response.json()) as { errors: { location: unknown[]; code: string }[] };
  expect([response.status, errors.map(({ location, code }) => `${location.join('.')} ${code}`)]).toEqual([
    422,
    expect.arrayContaining(['body.picture invalid']) as string[],
  ]);
});

test('the document shows the parts of the form', () => {
  const document = wholeDocument(openApiDocument(app.routes, { title: 'x', version: '1' }));
  expect(JSON.stringify(document)).toContain('"contentMediaType":"text/*"');
});

function chunk(text: string): string[] {
  return [`${Buffer.byteLength(text).toString(16)}\r\n`, text, '\r\n'];
}
