import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { sdk } from '../../../../test/uploads/aws-sdk.ts';
import { policySignature, presignUrl, signHeaders, signPostPolicy, type SigningContext } from './sigv4.ts';

const { createPresignedPost, GetObjectCommand, getSignedUrl, PutObjectCommand, S3Client, UploadPartCommand } = sdk;

// AWS's published examples; the keys in them are AWS's own and open nothing.
const credentials = { accessKeyId: 'AKIAIOSFODNN7EXAMPLE', secretAccessKey: ['wJalrXUtnFEMI', 'K7MDENG', 'bPxRfiCYEXAMPLEKEY'].join('/') };
const context: SigningContext = { credentials, region: 'us-east-1', now: new Date('2013-05-24T00:00:00Z') };
const origin = 'https://examplebucket.s3.amazonaws.com';
const signature = (headers: Readonly<Record<string, string>>) => /Signature=([0-9a-f]{64})$/.exec(headers['authorization'] ?? '')?.[1];

describe('examples published by AWS (Signature Version 4 in the S3 API reference)', () => {
  test('GET object with a range', () => {
    const headers = signHeaders({ method: 'GET', origin, path: '/test.txt', headers: { range: 'bytes=0-9' } }, context);
    expect(signature(headers)).toBe('f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41');
  });

  test('PUT object with a body and a name that needs encoding', () => {
    const payload = createHash('sha256').update('Welcome to Amazon S3.').digest('hex');
    const given = { date: 'Fri, 24 May 2013 00:00:00 GMT', 'x-amz-storage-class': 'REDUCED_REDUNDANCY' };
    const headers = signHeaders({ method: 'PUT', origin, path: '/test$file.text', headers: given }, context, payload);
    expect(signature(headers)).toBe('98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd');
  });

  test('GET with a query parameter without a value, and with several', () => {
    const lifecycle = signHeaders({ method: 'GET', origin, path: '/', query: [['lifecycle', '']] }, context);
    expect(signature(lifecycle)).toBe('fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543');
    const query = [['max-keys', '2'], ['prefix', 'J']] as const; // prettier-ignore
    expect(signature(signHeaders({ method: 'GET', origin, path: '/', query }, context))).toBe(
      '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
    );
  });

  test('a presigned URL', () => {
    expect(presignUrl({ method: 'GET', origin, path: '/test.txt' }, context, 86_400)).toBe(
      `${origin}/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404&X-Amz-SignedHeaders=host`,
    );
  });

  test('a POST policy', () => {
    const lines = [
      '{ "expiration": "2015-12-30T12:00:00.000Z",',
      '  "conditions": [',
      '    {"bucket": "sigv4examplebucket"},',
      '    ["starts-with", "$key", "user/user1/"],',
      '    {"acl": "public-read"},',
      '    {"success_action_redirect": "http://sigv4examplebucket.s3.amazonaws.com/successful_upload.html"},',
      '    ["starts-with", "$Content-Type", "image/"],',
      '    {"x-amz-meta-uuid": "14365123651274"},',
      '    {"x-amz-server-side-encryption": "AES256"},',
      '    ["starts-with", "$x-amz-meta-tag", ""],',
      '',
      '    {"x-amz-credential": "AKIAIOSFODNN7EXAMPLE/20151229/us-east-1/s3/aws4_request"},',
      '    {"x-amz-algorithm": "AWS4-HMAC-SHA256"},',
      '    {"x-amz-date": "20151229T000000Z" }',
      '  ]',
      '}',
    ];
    const policy = Buffer.from(lines.join('\r\n')).toString('base64');
    expect(policySignature(policy, { ...context, now: new Date('2015-12-29T00:00:00Z') })).toBe(
      '8afdbf4008c03f22c2cd3cdb72e4afbb1f6a588f3255ac628749a66d7f09699e',
    );
  });
});

describe('byte for byte what the AWS SDK makes', () => {
  const now = new Date('2026-03-01T12:34:56Z');
  const names = ['plain.txt', "a b/ü?&=+*'()!~.txt", 'x/%2e%2e/y', '日本語.png'];
  const tokens = [undefined, 'FwoGZXIvYXdzE//+='];
  const cases = names.flatMap((key) => tokens.map((sessionToken) => ({ key, sessionToken })));

  const client = (sessionToken: string | undefined) =>
    new S3Client({
      region: 'eu-central-1',
      credentials: { ...credentials, ...(sessionToken === undefined ? {} : { sessionToken }) },
      endpoint: 'https://store.example:9000',
      forcePathStyle: true,
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
    });
  const ours = (sessionToken: string | undefined): SigningContext => ({
    credentials: { ...credentials, ...(sessionToken === undefined ? {} : { sessionToken }) },
    region: 'eu-central-1',
    now,
  });
  const store = 'https://store.example:9000';
  // What the SDK adds on its own; part of what is signed, so it is given to ours too.
  const extra = (id: string) => [['X-Amz-Content-Sha256', 'UNSIGNED-PAYLOAD'], ['x-id', id]] as const; // prettier-ignore
  const sorted = (url: string) => {
    const [address = '', query = ''] = url.split('?');
    return [address, ...query.split('&').toSorted()];
  };

  test.each(cases)('PUT $key with length, type and checksum signed', async ({ key, sessionToken }) => {
    const headers = {
      'content-length': '1234',
      'content-type': 'image/png',
      'x-amz-checksum-sha256': 'n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=',
    };
    const command = new PutObjectCommand({
      Bucket: 'bucket',
      Key: key,
      ContentLength: 1234,
      ContentType: 'image/png',
      ChecksumSHA256: headers['x-amz-checksum-sha256'],
    });
    const theirs = await getSignedUrl(client(sessionToken), command, {
      expiresIn: 600,
      signingDate: now,
      signableHeaders: new Set(['host', 'content-length', 'content-type']),
      unhoistableHeaders: new Set(['x-amz-checksum-sha256']),
    });
    const request = { method: 'PUT', origin: store, path: `/bucket/${key}`, headers, query: extra('PutObject') };
    expect(sorted(presignUrl(request, ours(sessionToken), 600))).toEqual(sorted(theirs));
  });

  test.each(cases)('GET $key with its own disposition', async ({ key, sessionToken }) => {
    const disposition = `attachment; filename="a b.txt"; filename*=UTF-8''%C3%BC.txt`;
    const command = new GetObjectCommand({ Bucket: 'bucket', Key: key, ResponseContentDisposition: disposition });
    const theirs = await getSignedUrl(client(sessionToken), command, { expiresIn: 300, signingDate: now });
    // Downloads of the SDK ask for checksums unless told otherwise.
    const asked = new URL(theirs).searchParams.get('x-amz-checksum-mode');
    const query = [
      ['response-content-disposition', disposition] as const,
      ...extra('GetObject'),
      ...(asked === null ? [] : [['x-amz-checksum-mode', asked] as const]),
    ];
    const request = { method: 'GET', origin: store, path: `/bucket/${key}`, query };
    expect(sorted(presignUrl(request, ours(sessionToken), 300))).toEqual(sorted(theirs));
  });

  test('a part of a multipart upload', async () => {
    const command = new UploadPartCommand({ Bucket: 'bucket', Key: 'k', UploadId: 'a/b+c', PartNumber: 7, ContentLength: 5 });
    const theirs = await getSignedUrl(client(undefined), command, {
      expiresIn: 600,
      signingDate: now,
      signableHeaders: new Set(['host', 'content-length']),
    });
    const query = [['partNumber', '7'], ['uploadId', 'a/b+c'], ...extra('UploadPart')] as const; // prettier-ignore
    const request = { method: 'PUT', origin: store, path: '/bucket/k', headers: { 'content-length': '5' }, query };
    expect(sorted(presignUrl(request, ours(undefined), 600))).toEqual(sorted(theirs));
  });

  test('the signature of a POST policy', async () => {
    const { fields } = await createPresignedPost(client('token'), {
      Bucket: 'bucket',
      Key: 'k.png',
      Conditions: [['content-length-range', 3, 3], { 'Content-Type': 'image/png' }],
      Fields: { 'Content-Type': 'image/png' },
      Expires: 600,
    });
    const signedAt = String(fields['X-Amz-Date']).replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z');
    const at = { ...ours('token'), now: new Date(signedAt) };
    expect(policySignature(String(fields['Policy']), at)).toBe(fields['X-Amz-Signature']);
    const made = signPostPolicy({ conditions: [{ bucket: 'bucket' }], expiresAt: new Date(at.now.getTime() + 600_000) }, at);
    expect(made).toMatchObject({ 'x-amz-credential': fields['X-Amz-Credential'], 'x-amz-date': fields['X-Amz-Date'] });
    expect(made['x-amz-signature']).toBe(policySignature(made['policy'] ?? '', at));
  });
});

test('neither a URL nor headers hold the secret key', () => {
  const made = JSON.stringify([
    presignUrl({ method: 'GET', origin, path: '/x' }, context, 60),
    signHeaders({ method: 'GET', origin, path: '/x' }, context),
  ]);
  expect(made).not.toContain(credentials.secretAccessKey);
  expect(made).not.toContain('EXAMPLEKEY');
});
