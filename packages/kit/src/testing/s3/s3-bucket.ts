import { createHash } from 'node:crypto';
import type { Clock } from '../../db/clock.ts';
import { md5, sha256, type S3Multipart, type S3Object, type S3Objects } from './s3-objects.ts';
import { readForm, refuseForm } from './s3-post-policy.ts';
import type { KnownKey, Refusal } from './s3-signature.ts';

export interface Arrived {
  readonly method: string;
  readonly key: string;
  readonly query: ReadonlyMap<string, string>;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Buffer;
}

export interface Reply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

const xmlText = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
const xml = (name: string, inner: string) =>
  `<?xml version="1.0" encoding="UTF-8"?>\n<${name} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${inner}</${name}>`;
const tag = (name: string, value: string | number) => `<${name}>${xmlText(String(value))}</${name}>`;
const PAGE = 1000;

/** What the body must be, as the headers say. */
export function refuseBody({ headers, body, method }: Arrived): Refusal | null {
  const payload = headers['x-amz-content-sha256'];
  if (payload !== undefined && /^[0-9a-f]{64}$/.test(payload) && payload !== createHash('sha256').update(body).digest('hex'))
    return {
      status: 400,
      code: 'XAmzContentSHA256Mismatch',
      message: 'The provided x-amz-content-sha256 header does not match what was computed.',
    };
  const sum = headers['x-amz-checksum-sha256'];
  if (sum !== undefined && !/^[A-Za-z0-9+/]{43}=$/.test(sum))
    return { status: 400, code: 'InvalidRequest', message: 'Value for x-amz-checksum-sha256 header is invalid.' };
  if (sum !== undefined && sum !== sha256(body))
    return { status: 400, code: 'BadDigest', message: 'The SHA256 you specified did not match the calculated checksum.' };
  const digest = headers['content-md5'];
  if (digest !== undefined && digest !== createHash('md5').update(body).digest('base64'))
    return { status: 400, code: 'BadDigest', message: 'The Content-MD5 you specified did not match what we received.' };
  if (method === 'PUT' && headers['content-length'] === undefined && headers['x-amz-decoded-content-length'] === undefined)
    return { status: 411, code: 'MissingContentLength', message: 'You must provide the Content-Length HTTP header.' };
  return null;
}

/** The operations on one bucket, once a request is known to be signed. */
export class Bucket {
  readonly #store: S3Objects;
  readonly #bucket: string;
  readonly #clock: Clock;
  #count = 0;

  constructor(store: S3Objects, bucket: string, clock: Clock) {
    this.#store = store;
    this.#bucket = bucket;
    this.#clock = clock;
  }

  answer(arrived: Arrived): Reply {
    const { method, key, query } = arrived;
    if (key === '')
      return method === 'GET'
        ? query.has('uploads')
          ? this.#listMultiparts(query)
          : this.#list(query)
        : method === 'HEAD'
          ? { status: 200 }
          : notAllowed();
    const uploadId = query.get('uploadId');
    if (method === 'POST' && query.has('uploads')) return this.#create(arrived);
    if (uploadId !== undefined) return this.#multipart(arrived, uploadId);
    if (method === 'PUT') return arrived.headers['x-amz-copy-source'] === undefined ? this.#put(arrived) : this.#copy(arrived);
    if (method === 'GET' || method === 'HEAD') return this.#get(arrived);
    if (method !== 'DELETE') return notAllowed();
    this.#store.objects.delete(key);
    return { status: 204 };
  }

  form({ headers, body }: Arrived, key: KnownKey): Reply {
    const form = readForm(headers['content-type'] ?? '', body);
    if (form === null)
      return errorReply({
        status: 400,
        code: 'MalformedPOSTRequest',
        message: 'The body of your POST request is not well-formed multipart/form-data.',
      });
    const refused = refuseForm(form, this.#bucket, key, this.#clock.now());
    if (refused !== null) return errorReply(refused);
    const sum = form.fields.get('x-amz-checksum-sha256');
    if (sum !== undefined && sum !== sha256(form.file))
      return errorReply({ status: 400, code: 'BadDigest', message: 'The SHA256 you specified did not match the calculated checksum.' });
    const contentType = form.fields.get('content-type') ?? 'binary/octet-stream';
    const stored = this.#write(form.fields.get('key') ?? '', form.file, contentType, sum ?? null);
    return { status: 204, headers: { etag: `"${stored.etag}"` } };
  }

  #write(key: string, bytes: Buffer, contentType: string, sum: string | null, etag = md5(bytes)): S3Object {
    return this.#store.put(key, { bytes, contentType, etag, sha256: sum, modifiedAt: this.#clock.now() });
  }

  #put({ key, headers, body }: Arrived): Reply {
    const current = this.#store.objects.get(key);
    if (headers['if-none-match'] === '*' && current !== undefined) return preconditionFailed();
    const wanted = headers['if-match'];
    if (wanted !== undefined && (current === undefined || !sameEtag(wanted, current.etag))) return preconditionFailed();
    const stored = this.#write(key, body, headers['content-type'] ?? 'binary/octet-stream', headers['x-amz-checksum-sha256'] ?? null);
    return { status: 200, headers: describe(stored) };
  }

  #copy({ key, headers }: Arrived): Reply {
    const source = decodeURIComponent(headers['x-amz-copy-source'] ?? '').replace(/^\//, '');
    const found = source.startsWith(`${this.#bucket}/`) ? this.#store.objects.get(source.slice(this.#bucket.length + 1)) : undefined;
    if (found === undefined) return errorReply({ status: 404, code: 'NoSuchKey', message: 'The specified key does not exist.' });
    const wanted = headers['x-amz-copy-source-if-match'];
    if (wanted !== undefined && !sameEtag(wanted, found.etag)) return preconditionFailed();
    const stored = this.#write(key, found.bytes, found.contentType, found.sha256);
    const inner = tag('LastModified', stored.modifiedAt.toISOString()) + tag('ETag', `"${stored.etag}"`);
    return { status: 200, headers: { 'x-amz-version-id': stored.versionId }, body: xml('CopyObjectResult', inner) };
  }

  #get({ key, headers, query }: Arrived): Reply {
    const found = this.#store.objects.get(key);
    if (found === undefined) return errorReply({ status: 404, code: 'NoSuchKey', message: 'The specified key does not exist.' });
    if (headers['if-match'] !== undefined && !sameEtag(headers['if-match'], found.etag)) return preconditionFailed();
    if (headers['if-none-match'] !== undefined && sameEtag(headers['if-none-match'], found.etag)) return { status: 304 };
    const described: Record<string, string> = {
      ...describe(found),
      'content-type': found.contentType,
      'last-modified': found.modifiedAt.toUTCString(),
      'accept-ranges': 'bytes',
    };
    // Checksums are of the whole object, and for those who ask.
    if (headers['x-amz-checksum-mode'] !== 'ENABLED' || headers['range'] !== undefined) delete described['x-amz-checksum-sha256'];
    for (const name of ['content-type', 'content-disposition', 'cache-control']) {
      const override = query.get(`response-${name}`);
      if (override !== undefined) described[name] = override;
    }
    return ranged(found.bytes, headers['range'], described);
  }

  #list(query: ReadonlyMap<string, string>): Reply {
    const prefix = query.get('prefix') ?? '';
    const after = query.get('continuation-token') ?? '';
    const max = Math.min(Number(query.get('max-keys') ?? PAGE), PAGE);
    const keys = this.#store.keys(prefix).filter((key) => key > after);
    const page = keys.slice(0, max);
    const contents = page.map((key) => {
      const { etag, bytes, modifiedAt } = this.#store.objects.get(key) as S3Object;
      return `<Contents>${tag('Key', key)}${tag('LastModified', modifiedAt.toISOString())}${tag('ETag', `"${etag}"`)}${tag('Size', bytes.length)}${tag('StorageClass', 'STANDARD')}</Contents>`;
    });
    const next = keys.length > max ? tag('NextContinuationToken', page.at(-1) ?? '') : '';
    const head =
      tag('Name', this.#bucket) +
      tag('Prefix', prefix) +
      tag('KeyCount', page.length) +
      tag('MaxKeys', max) +
      tag('IsTruncated', String(keys.length > max));
    return { status: 200, body: xml('ListBucketResult', head + next + contents.join('')) };
  }

  #listMultiparts(query: ReadonlyMap<string, string>): Reply {
    const found = [...this.#store.multiparts].filter(([, { key }]) => key.startsWith(query.get('prefix') ?? ''));
    const uploads = found.map(
      ([id, { key, startedAt }]) => `<Upload>${tag('Key', key)}${tag('UploadId', id)}${tag('Initiated', startedAt.toISOString())}</Upload>`,
    );
    return {
      status: 200,
      body: xml('ListMultipartUploadsResult', tag('Bucket', this.#bucket) + tag('IsTruncated', 'false') + uploads.join('')),
    };
  }

  #create({ key, headers }: Arrived): Reply {
    const id = `multipart+${(this.#count += 1)}/=`;
    const checksums = headers['x-amz-checksum-algorithm'] === 'SHA256';
    const contentType = headers['content-type'] ?? 'binary/octet-stream';
    this.#store.multiparts.set(id, { key, contentType, checksums, startedAt: this.#clock.now(), parts: new Map() });
    return { status: 200, body: xml('InitiateMultipartUploadResult', tag('Bucket', this.#bucket) + tag('Key', key) + tag('UploadId', id)) };
  }

  #multipart(arrived: Arrived, id: string): Reply {
    const { method, key, query } = arrived;
    const upload = this.#store.multiparts.get(id);
    if (upload === undefined || upload.key !== key)
      return errorReply({ status: 404, code: 'NoSuchUpload', message: 'The specified upload does not exist.' });
    if (method === 'PUT') return this.#part(arrived, upload, Number(query.get('partNumber')));
    if (method === 'GET') return this.#listParts(upload, id, query);
    if (method === 'POST') return this.#complete(arrived, upload, id);
    if (method !== 'DELETE') return notAllowed();
    this.#store.multiparts.delete(id);
    return { status: 204 };
  }

  #part({ headers, body }: Arrived, upload: S3Multipart, number: number): Reply {
    if (!Number.isInteger(number) || number < 1 || number > 10_000)
      return errorReply({ status: 400, code: 'InvalidArgument', message: 'Part number must be an integer between 1 and 10000.' });
    const sum = headers['x-amz-checksum-sha256'];
    if (upload.checksums && sum === undefined)
      return errorReply({
        status: 400,
        code: 'InvalidRequest',
        message: 'Checksum Type mismatch occurred, expected checksum Type: sha256, actual checksum Type: null',
      });
    upload.parts.set(number, { bytes: body, etag: md5(body), sha256: sum ?? null });
    return { status: 200, headers: { etag: `"${md5(body)}"`, ...(sum === undefined ? {} : { 'x-amz-checksum-sha256': sum }) } };
  }

  #listParts(upload: S3Multipart, id: string, query: ReadonlyMap<string, string>): Reply {
    const after = Number(query.get('part-number-marker') ?? 0);
    const max = Math.min(Number(query.get('max-parts') ?? PAGE), PAGE);
    const all = [...upload.parts].filter(([number]) => number > after).toSorted(([a], [b]) => a - b);
    const page = all.slice(0, max);
    const parts = page.map(
      ([number, part]) =>
        `<Part>${tag('PartNumber', number)}${tag('ETag', `"${part.etag}"`)}${tag('Size', part.bytes.length)}${part.sha256 === null ? '' : tag('ChecksumSHA256', part.sha256)}</Part>`,
    );
    const next = all.length > max ? tag('NextPartNumberMarker', page.at(-1)?.[0] ?? 0) : '';
    const head = tag('Bucket', this.#bucket) + tag('Key', upload.key) + tag('UploadId', id) + tag('IsTruncated', String(all.length > max));
    return { status: 200, body: xml('ListPartsResult', head + next + parts.join('')) };
  }

  #complete({ body }: Arrived, upload: S3Multipart, id: string): Reply {
    const listed = [...body.toString('utf8').matchAll(/<Part>([\s\S]*?)<\/Part>/g)].map(([, inner = '']) => {
      const value = (name: string) => new RegExp(`<${name}>([^<]*)</${name}>`).exec(inner)?.[1]?.replaceAll('&quot;', '"');
      return { number: Number(value('PartNumber')), etag: value('ETag')?.replaceAll('"', ''), sum: value('ChecksumSHA256') };
    });
    if (listed.length === 0) return errorReply({ status: 400, code: 'MalformedXML', message: 'The XML you provided was not well-formed.' });
    const parts: Buffer[] = [];
    for (const [index, { number, etag, sum }] of listed.entries()) {
      const part = upload.parts.get(number);
      if (index > 0 && number <= (listed[index - 1]?.number ?? 0))
        return errorReply({ status: 400, code: 'InvalidPartOrder', message: 'The list of parts was not in ascending order.' });
      if (part === undefined || part.etag !== etag || (upload.checksums && part.sha256 !== sum))
        return errorReply({ status: 400, code: 'InvalidPart', message: 'One or more of the specified parts could not be found.' });
      if (index < listed.length - 1 && part.bytes.length < 5 * 1024 * 1024)
        return errorReply({
          status: 400,
          code: 'EntityTooSmall',
          message: 'Your proposed upload is smaller than the minimum allowed size',
        });
      parts.push(part.bytes);
    }
    const digests = Buffer.concat(listed.map(({ etag = '' }) => Buffer.from(etag, 'hex')));
    const stored = this.#write(upload.key, Buffer.concat(parts), upload.contentType, null, `${md5(digests)}-${listed.length}`);
    this.#store.multiparts.delete(id);
    return {
      status: 200,
      body: xml('CompleteMultipartUploadResult', tag('Bucket', this.#bucket) + tag('Key', upload.key) + tag('ETag', `"${stored.etag}"`)),
    };
  }
}

function describe({ etag, versionId, sha256: sum }: S3Object): Record<string, string> {
  return { etag: `"${etag}"`, 'x-amz-version-id': versionId, ...(sum === null ? {} : { 'x-amz-checksum-sha256': sum }) };
}

function sameEtag(given: string, etag: string): boolean {
  return given === '*' || given.split(',').some((each) => each.trim().replaceAll('"', '') === etag);
}

function ranged(bytes: Buffer, range: string | undefined, headers: Readonly<Record<string, string>>): Reply {
  const [, first, last] = /^bytes=(\d*)-(\d*)$/.exec(range ?? '') ?? [];
  if (first === undefined) return { status: 200, headers, body: bytes };
  const start = first === '' ? Math.max(0, bytes.length - Number(last)) : Number(first);
  const end = first === '' || last === '' ? bytes.length : Math.min(Number(last) + 1, bytes.length);
  if (start >= end) return errorReply({ status: 416, code: 'InvalidRange', message: 'The requested range is not satisfiable' });
  return {
    status: 206,
    headers: { ...headers, 'content-range': `bytes ${start}-${end - 1}/${bytes.length}` },
    body: bytes.subarray(start, end),
  };
}

function preconditionFailed(): Reply {
  return errorReply({ status: 412, code: 'PreconditionFailed', message: 'At least one of the pre-conditions you specified did not hold' });
}

function notAllowed(): Reply {
  return errorReply({ status: 405, code: 'MethodNotAllowed', message: 'The specified method is not allowed against this resource.' });
}

export function errorReply({ status, code, message }: Refusal): Reply {
  return {
    status,
    headers: { 'content-type': 'application/xml' },
    body: `<?xml version="1.0" encoding="UTF-8"?>\n<Error>${tag('Code', code)}${tag('Message', message)}</Error>`,
  };
}
