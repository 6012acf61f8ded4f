import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sdk } from '../../../test/uploads/aws-sdk.ts';
import { fakeClock } from '../fake-clock.ts';
import { s3Double, type S3Double } from './s3-double.ts';

// The SDK is the independent client here: what the double refuses or grants it must refuse or grant to the SDK too.
const clock = fakeClock(new Date());
let double: S3Double;
let client: InstanceType<typeof sdk.S3Client>;

beforeEach(async () => {
  clock.set(new Date());
  double = await s3Double({ clock });
  client = clientOf(double);
});
afterEach(async () => {
  client.destroy();
  await double.close();
});

function clientOf({ endpoint, region, key }: S3Double, more: object = {}) {
  return new sdk.S3Client({ endpoint, region, credentials: key, forcePathStyle: true, maxAttempts: 1, ...more });
}
const at = (Key: string) => ({ Bucket: double.bucket, Key });
const sum = (text: string) => createHash('sha256').update(text).digest('base64');
const name = (expected: string) => expect.objectContaining({ name: expected });

describe('with the AWS SDK', () => {
  test('objects are written, read, ranged, copied, listed and removed', async () => {
    const put = await client.send(
      new sdk.PutObjectCommand({ ...at('a b/ü+.txt'), Body: 'hello', ContentType: 'text/plain', ChecksumSHA256: sum('hello') }),
    );
    expect(put).toMatchObject({ ETag: `"${createHash('md5').update('hello').digest('hex')}"`, VersionId: 'v1' });
    const got = await client.send(new sdk.GetObjectCommand(at('a b/ü+.txt')));
    expect(await got.Body?.transformToString()).toBe('hello');
    expect(got.ContentType).toBe('text/plain');
    const range = await client.send(new sdk.GetObjectCommand({ ...at('a b/ü+.txt'), Range: 'bytes=1-2' }));
    expect([await range.Body?.transformToString(), range.ContentRange]).toEqual(['el', 'bytes 1-2/5']);
    await client.send(
      new sdk.CopyObjectCommand({ ...at('copy'), CopySource: encodeURI(`${double.bucket}/a b/ü+.txt`), CopySourceIfMatch: put.ETag }),
    );
    await expect(
      client.send(new sdk.CopyObjectCommand({ ...at('x'), CopySource: `${double.bucket}/copy`, CopySourceIfMatch: '"0"' })),
    ).rejects.toEqual(name('PreconditionFailed'));
    const listed = await client.send(new sdk.ListObjectsV2Command({ Bucket: double.bucket, Prefix: 'a b/' }));
    expect(listed.Contents).toMatchObject([{ Key: 'a b/ü+.txt', Size: 5 }]);
    await client.send(new sdk.DeleteObjectCommand(at('copy')));
    await expect(client.send(new sdk.GetObjectCommand(at('copy')))).rejects.toEqual(name('NoSuchKey'));
    expect(double.stored.versions).toHaveLength(2);
  });

  test('lists of more than one page are continued', async () => {
    for (let index = 0; index < 5; index += 1) await client.send(new sdk.PutObjectCommand({ ...at(`k${index}`), Body: 'x' }));
    const keys: (string | undefined)[] = [];
    for await (const page of sdk.paginateListObjectsV2({ client, pageSize: 2 }, { Bucket: double.bucket }))
      keys.push(...(page.Contents ?? []).map(({ Key }) => Key));
    expect(keys).toEqual(['k0', 'k1', 'k2', 'k3', 'k4']);
  });

  test('multipart: parts, their list, completion, abort', async () => {
    const { UploadId } = await client.send(new sdk.CreateMultipartUploadCommand({ ...at('big'), ChecksumAlgorithm: 'SHA256' }));
    const bodies = [Buffer.alloc(5 * 1024 * 1024, 'a'), Buffer.from('tail')];
    for (const [index, Body] of bodies.entries())
      await client.send(
        new sdk.UploadPartCommand({
          ...at('big'),
          UploadId,
          PartNumber: index + 1,
          Body,
          ChecksumSHA256: createHash('sha256').update(Body).digest('base64'),
        }),
      );
    await expect(
      client.send(new sdk.UploadPartCommand({ ...at('big'), UploadId, PartNumber: 3, Body: 'x', ChecksumAlgorithm: 'CRC32' })),
    ).rejects.toEqual(name('InvalidRequest'));
    const { Parts = [] } = await client.send(new sdk.ListPartsCommand({ ...at('big'), UploadId }));
    expect(Parts.map(({ PartNumber, Size }) => [PartNumber, Size])).toEqual([[1, 5 * 1024 * 1024], [2, 4]]); // prettier-ignore
    const wrong = Parts.map((part) => ({ ...part, ETag: '"0"' }));
    await expect(
      client.send(new sdk.CompleteMultipartUploadCommand({ ...at('big'), UploadId, MultipartUpload: { Parts: wrong } })),
    ).rejects.toEqual(name('InvalidPart'));
    await client.send(new sdk.CompleteMultipartUploadCommand({ ...at('big'), UploadId, MultipartUpload: { Parts } }));
    expect(double.stored.objects.get('big')?.bytes).toHaveLength(5 * 1024 * 1024 + 4);
    await expect(client.send(new sdk.ListPartsCommand({ ...at('big'), UploadId }))).rejects.toEqual(name('NoSuchUpload'));
    const other = await client.send(new sdk.CreateMultipartUploadCommand(at('gone')));
    expect((await client.send(new sdk.ListMultipartUploadsCommand({ Bucket: double.bucket }))).Uploads).toMatchObject([{ Key: 'gone' }]);
    await client.send(new sdk.AbortMultipartUploadCommand({ ...at('gone'), UploadId: other.UploadId }));
    expect(double.stored.multiparts.size).toBe(0);
  });

  test('conditional writes', async () => {
    await client.send(new sdk.PutObjectCommand({ ...at('k'), Body: '1', IfNoneMatch: '*' }));
    await expect(client.send(new sdk.PutObjectCommand({ ...at('k'), Body: '2', IfNoneMatch: '*' }))).rejects.toEqual(
      name('PreconditionFailed'),
    );
    await expect(client.send(new sdk.PutObjectCommand({ ...at('k'), Body: '2', IfMatch: '"0"' }))).rejects.toEqual(
      name('PreconditionFailed'),
    );
  });

  test.each([
    ['SignatureDoesNotMatch', { credentials: { accessKeyId: 'TESTKEY', secretAccessKey: 'wrong' } }],
    ['InvalidAccessKeyId', { credentials: { accessKeyId: 'OTHER', secretAccessKey: 'wrong' } }],
    ['AuthorizationHeaderMalformed', { region: 'eu-west-1' }],
    ['InvalidToken', { credentials: { accessKeyId: 'TESTKEY', secretAccessKey: 'test-secret-of-the-double', sessionToken: 'x' } }],
  ])('%s', async (code, more) => {
    const other = clientOf(double, more);
    await expect(other.send(new sdk.ListObjectsV2Command({ Bucket: double.bucket }))).rejects.toEqual(name(code));
    other.destroy();
  });

  test('a wrong SHA-256 is refused', async () => {
    await expect(client.send(new sdk.PutObjectCommand({ ...at('k'), Body: 'hello', ChecksumSHA256: sum('other') }))).rejects.toEqual(
      name('BadDigest'),
    );
    expect(double.stored.keys()).toEqual([]);
  });

  test('presigned: the SDK’s URL works, until it expires, for exactly what it was signed for', async () => {
    const command = new sdk.PutObjectCommand({ ...at('p'), ContentLength: 5, ContentType: 'text/plain' });
    const signableHeaders = new Set(['host', 'content-length', 'content-type']);
    const quiet = clientOf(double, { requestChecksumCalculation: 'WHEN_REQUIRED' });
    const url = await sdk.getSignedUrl(quiet, command, { expiresIn: 60, signableHeaders, signingDate: clock.now() });
    const put = (address: string, body: string, type = 'text/plain', method: 'PUT' | 'POST' = 'PUT') =>
      fetch(new Request(address, { method, body, headers: { 'content-type': type } }));
    for (const answer of [
      await put(url, 'longer'),
      await put(url, '1234'),
      await put(url, 'hello', 'text/html'),
      await put(url, 'hello', 'text/plain', 'POST'),
      await put(url.replace('/p?', '/q?'), 'hello'),
      await put(url.replace('X-Amz-Expires=60', 'X-Amz-Expires=61'), 'hello'),
      await put(url.split('?')[0] ?? '', 'hello'),
    ])
      expect(answer.status).toBe(403);
    expect(double.stored.keys()).toEqual([]);
    expect((await put(url, 'hello')).status).toBe(200);
    clock.advance(61_000);
    const late = await put(url, 'hello');
    expect([late.status, await late.text()]).toEqual([403, expect.stringContaining('Request has expired')]);
    quiet.destroy();
  });

  test('POST policies hold the form to their conditions', async () => {
    const { url, fields } = await sdk.createPresignedPost(client, {
      ...at('form.txt'),
      Conditions: [['content-length-range', 2, 5], { 'Content-Type': 'text/plain' }],
      Fields: { 'Content-Type': 'text/plain' },
      Expires: 60,
    });
    const post = (changes: Record<string, string>, body = 'hello') => {
      const form = new FormData();
      for (const [field, value] of Object.entries({ ...fields, ...changes })) form.set(field, value);
      form.set('file', new Blob([body]), 'x.txt');
      return fetch(url, { method: 'POST', body: form });
    };
    const code = async (answer: Response) => /<Code>(\w+)</.exec(await answer.text())?.[1];
    expect(await code(await post({}, 'h'))).toBe('EntityTooSmall');
    expect(await code(await post({}, 'hello!'))).toBe('EntityTooLarge');
    expect(await code(await post({ 'Content-Type': 'text/html' }))).toBe('AccessDenied');
    expect(await code(await post({ key: 'other.txt' }))).toBe('AccessDenied');
    expect(await code(await post({ acl: 'public-read' }))).toBe('AccessDenied');
    expect(await code(await post({ 'X-Amz-Signature': '0'.repeat(64) }))).toBe('SignatureDoesNotMatch');
    expect(double.stored.keys()).toEqual([]);
    expect((await post({})).status).toBe(204);
    clock.advance(61_000);
    expect(await code(await post({}))).toBe('AccessDenied');
  });
});

test('faults: an error, a lost answer, a reset, a wrong etag, a delay', async () => {
  const put = (key: string) => client.send(new sdk.PutObjectCommand({ ...at(key), Body: 'x' }));
  const on = (key: string) => (request: { readonly key: string }) => request.key === key;
  double.fail({ when: on('error'), fault: 'error' });
  await expect(put('error')).rejects.toEqual(name('InternalError'));
  double.fail({ when: on('lost'), fault: 'lost' });
  await expect(put('lost')).rejects.toEqual(name('InternalError'));
  double.fail({ when: on('reset'), fault: 'reset' });
  await expect(put('reset')).rejects.toMatchObject({ code: 'ECONNRESET' });
  double.fail({ when: on('etag'), fault: 'etag' });
  expect((await put('etag')).ETag).toBe('"0"');
  double.fail({ when: on('slow'), fault: 1 });
  await put('slow');
  expect(double.stored.keys()).toEqual(['etag', 'lost', 'slow']);
  await put('error');
});
