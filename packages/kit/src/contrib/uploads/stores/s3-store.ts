import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import type { Agent, Dispatcher } from 'undici';
import { systemClock, type Clock } from '../../../db/clock.ts';
import { isKitError } from '../../../errors/kit-error.ts';
import { serverAttributes } from '../../../observe/server-attributes.ts';
import { activeTracing } from '../../../observe/tracing.ts';
import { type OptionRules, readOptions } from '../../../options/read-options.ts';
import { filledText, flag, required, rule, secret } from '../../../options/value-rule.ts';
import { uploadErrors } from '../errors.ts';
import { contentDisposition } from '../declare/file-name.ts';
import type {
  ListedObject,
  PresignRequest,
  SignedRequest,
  StoredObject,
  StoredPart,
  StoreHost,
  UploadStore,
} from '../declare/upload-store.ts';
import { credentialReader, type S3CredentialSource } from './s3-credentials.ts';
import { encodePath, presignUrl, signHeaders, signPostPolicy, type S3Credentials, type SigningContext } from './sigv4.ts';
import { guarded, unreachable, whole } from './s3-response.ts';
import { element, elements, encodeXml } from './xml.ts';

export interface S3StoreOptions {
  /** `https://s3.eu-central-1.amazonaws.com`, or where another store speaks S3. Default: AWS's of the region. */
  readonly endpoint?: string;
  /** `auto` for Cloudflare R2. */
  readonly region: string;
  /** The name of the bucket. It must exist. */
  readonly bucket: string;
  /** The access key, or a function that returns the current one. */
  readonly credentials: S3CredentialSource;
  /** `https://endpoint/bucket/key` instead of `https://bucket.endpoint/key`. */
  readonly forcePathStyle?: boolean;
  /** In front of every key: `a/b`. */
  readonly prefix?: string;
  /** Hands out signed POST forms instead of PUT addresses, where a browser form shall send the file. R2 has none. */
  readonly postPolicy?: boolean;
}

const rules: OptionRules<S3StoreOptions> = {
  endpoint: rule('an address such as "https://s3.example.com"', (url) => typeof url === 'string' && /^https?:\/\/[^/?#]+\/?$/.test(url)),
  region: required(filledText),
  bucket: required(rule('the name of a bucket', (name) => typeof name === 'string' && /^[a-z0-9][a-z0-9._-]{1,62}$/i.test(name))),
  credentials: required(secret('{ accessKeyId, secretAccessKey } or { accessKeyIdFile, secretAccessKeyFile }', isCredentials)),
  forcePathStyle: flag,
  prefix: rule('segments such as "app/uploads"', (prefix) => typeof prefix === 'string' && /^(?:[\w.-]+(?:\/[\w.-]+)*)?$/.test(prefix)),
  postPolicy: flag,
};

const credentialNames: ReadonlySet<string> = new Set([
  'accessKeyId',
  'secretAccessKey',
  'sessionToken',
  'accessKeyIdFile',
  'secretAccessKeyFile',
  'sessionTokenFile',
]);

function isCredentials(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const given = value as Readonly<Record<string, unknown>>;
  const filled = (...names: readonly string[]) => names.every((name) => typeof given[name] === 'string' && given[name] !== '');
  return (
    (filled('accessKeyId', 'secretAccessKey') || filled('accessKeyIdFile', 'secretAccessKeyFile')) &&
    Object.keys(given).every((name) => credentialNames.has(name))
  );
}

/** Amazon S3 and everything that speaks it. Clients send to and fetch from the store itself; only requests about objects pass through the app. */
export function s3Store(options: S3StoreOptions): UploadStore {
  const { region, bucket, credentials, forcePathStyle = false, prefix = '', postPolicy = false } = readOptions('s3Store()', options, rules);
  const endpoint = new URL(options.endpoint ?? `https://s3.${region}.amazonaws.com`);
  const origin = forcePathStyle ? endpoint.origin : `${endpoint.protocol}//${bucket}.${endpoint.host}`;
  return new S3Store(
    { origin, base: forcePathStyle ? `/${bucket}` : '', bucket, region, prefix, postPolicy },
    credentialReader(credentials),
  );
}

interface S3Place {
  readonly origin: string;
  /** In front of every path: the bucket, or nothing. */
  readonly base: string;
  readonly bucket: string;
  readonly region: string;
  readonly prefix: string;
  readonly postPolicy: boolean;
}

interface S3Call {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE';
  readonly key?: string;
  readonly query?: readonly (readonly [string, string])[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Statuses that are answers, not failures; 404 and 412 among them where they mean something. */
  readonly expected: readonly number[];
}

const SECONDS_7_DAYS = 604_800;

class S3Store implements UploadStore {
  readonly name = 's3';
  readonly prefix: string;
  readonly origin: string;
  readonly #place: S3Place;
  readonly #credentials: () => Promise<S3Credentials>;
  #agent: Agent | undefined;
  #clock: Clock = systemClock;

  constructor(place: S3Place, credentials: () => Promise<S3Credentials>) {
    this.#place = place;
    this.prefix = place.prefix;
    this.origin = place.origin;
    this.#credentials = credentials;
  }

  attach({ clock }: StoreHost): void {
    this.#clock = clock;
  }

  async presign(request: PresignRequest): Promise<SignedRequest> {
    const context = await this.#context();
    const seconds = Math.max(1, Math.min(SECONDS_7_DAYS, Math.floor((request.expiresAt.getTime() - context.now.getTime()) / 1000)));
    const { origin } = this.#place;
    const path = this.#path(request.key);
    if (request.operation === 'get') {
      const query = [
        ['response-content-disposition', contentDisposition(request.disposition, request.fileName)],
        ['response-content-type', request.contentType],
      ] as const;
      return { method: 'GET', url: presignUrl({ method: 'GET', origin, path, query }, context, seconds), headers: {} };
    }
    const checksum: Record<string, string> = request.checksumSha256 === null ? {} : { 'x-amz-checksum-sha256': request.checksumSha256 };
    if (request.operation === 'part') {
      const query = [
        ['partNumber', String(request.number)],
        ['uploadId', request.multipartId],
      ] as const;
      const headers = { 'content-length': String(request.size), ...checksum };
      return { method: 'PUT', url: presignUrl({ method: 'PUT', origin, path, query, headers }, context, seconds), headers };
    }
    if (this.#place.postPolicy) return this.#post(request, checksum, context);
    const headers = { 'content-length': String(request.size), 'content-type': request.contentType, ...checksum };
    return { method: 'PUT', url: presignUrl({ method: 'PUT', origin, path, headers }, context, seconds), headers };
  }

  #post(
    request: PresignRequest & { readonly operation: 'put' },
    checksum: Readonly<Record<string, string>>,
    context: SigningContext,
  ): SignedRequest {
    const { bucket, origin, base } = this.#place;
    const exact: Record<string, string> = { key: request.key, 'Content-Type': request.contentType, ...checksum };
    const conditions = [
      { bucket },
      ...Object.entries(exact).map(([name, value]) => ({ [name]: value })),
      ['content-length-range', request.size, request.size] as const,
    ];
    const fields = { ...exact, ...signPostPolicy({ conditions, expiresAt: request.expiresAt }, context) };
    return { method: 'POST', url: `${origin}${base === '' ? '/' : base}`, headers: {}, fields };
  }

  async head(key: string, { checksum = false }: { readonly checksum?: boolean } = {}): Promise<StoredObject | null> {
    const headers: Record<string, string> = checksum ? { 'x-amz-checksum-mode': 'ENABLED' } : {};
    const found = await this.#call({ method: 'HEAD', key, headers, expected: [200, 404] });
    await whole(found.body.dump());
    return found.statusCode === 404 ? null : storedObject(found.headers);
  }

  async read(
    key: string,
    { start, end, ifMatch }: { readonly start?: number; readonly end?: number; readonly ifMatch?: string } = {},
  ): Promise<Readable> {
    const range = start === undefined && end === undefined ? {} : { range: `bytes=${start ?? 0}-${end === undefined ? '' : end - 1}` };
    const headers = { ...range, ...(ifMatch === undefined ? {} : { 'if-match': quoted(ifMatch) }) };
    const found = await this.#call({ method: 'GET', key, headers, expected: [200, 206, 404, 412] });
    if (found.statusCode === 404 || found.statusCode === 412) {
      await whole(found.body.dump());
      throw uploadErrors.upload_changed();
    }
    return guarded(found.body);
  }

  async copy(from: string, to: string, { ifMatch }: { readonly ifMatch: string }): Promise<Pick<StoredObject, 'etag' | 'versionId'>> {
    const headers = {
      'x-amz-copy-source': encodePath(`/${this.#place.bucket}/${from}`),
      'x-amz-copy-source-if-match': quoted(ifMatch),
    };
    const copied = await this.#call({ method: 'PUT', key: to, headers, expected: [200, 404, 412] });
    const xml = await whole(copied.body.text());
    if (copied.statusCode === 404) throw uploadErrors.not_uploaded();
    if (copied.statusCode === 412) throw uploadErrors.upload_changed();
    const etag = unquoted(element(xml, 'ETag'));
    // A copy may fail after its 200 was sent.
    if (etag === null) throw failure('CopyObject', 200, element(xml, 'Code'));
    return { etag, versionId: headerText(copied.headers, 'x-amz-version-id') };
  }

  async remove(key: string): Promise<void> {
    const { body } = await this.#call({ method: 'DELETE', key, expected: [200, 204, 404] });
    await whole(body.dump());
  }

  async *list(prefix: string): AsyncGenerator<ListedObject> {
    let token: string | null = null;
    do {
      const query: (readonly [string, string])[] = [
        ['list-type', '2'],
        ['prefix', prefix],
        ...(token === null ? [] : [['continuation-token', token] as const]),
      ];
      const xml = await this.#xml({ method: 'GET', query, expected: [200] });
      for (const entry of elements(xml, 'Contents'))
        yield {
          key: element(entry, 'Key') ?? '',
          size: Number(element(entry, 'Size')),
          modifiedAt: new Date(element(entry, 'LastModified') ?? 0),
        };
      token = element(xml, 'IsTruncated') === 'true' ? element(xml, 'NextContinuationToken') : null;
    } while (token !== null);
  }

  async createMultipart(key: string, { contentType }: { readonly contentType: string }): Promise<string> {
    const headers = { 'content-type': contentType, 'x-amz-checksum-algorithm': 'SHA256' };
    const xml = await this.#xml({ method: 'POST', key, query: [['uploads', '']], headers, expected: [200] });
    const id = element(xml, 'UploadId');
    if (id === null || id === '') throw failure('CreateMultipartUpload', 200, 'no UploadId');
    return id;
  }

  async listParts(key: string, multipartId: string): Promise<readonly StoredPart[]> {
    const parts: StoredPart[] = [];
    let marker: string | null = null;
    do {
      const query: (readonly [string, string])[] = [
        ['uploadId', multipartId],
        ...(marker === null ? [] : [['part-number-marker', marker] as const]),
      ];
      const found = await this.#call({ method: 'GET', key, query, expected: [200, 404] });
      const xml = await whole(found.body.text());
      if (found.statusCode === 404) return [];
      for (const entry of elements(xml, 'Part'))
        parts.push({
          number: Number(element(entry, 'PartNumber')),
          size: Number(element(entry, 'Size')),
          etag: unquoted(element(entry, 'ETag')) ?? '',
          checksumSha256: element(entry, 'ChecksumSHA256'),
        });
      marker = element(xml, 'IsTruncated') === 'true' ? element(xml, 'NextPartNumberMarker') : null;
    } while (marker !== null);
    return parts;
  }

  async completeMultipart(key: string, multipartId: string, parts: readonly StoredPart[]): Promise<void> {
    const entries = parts.map(
      ({ number, etag, checksumSha256 }) =>
        `<Part>${checksumSha256 === null ? '' : `<ChecksumSHA256>${encodeXml(checksumSha256)}</ChecksumSHA256>`}<ETag>${encodeXml(quoted(etag))}</ETag><PartNumber>${number}</PartNumber></Part>`,
    );
    const body = `<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${entries.join('')}</CompleteMultipartUpload>`;
    const headers = { 'content-type': 'application/xml' };
    const xml = await this.#xml({ method: 'POST', key, query: [['uploadId', multipartId]], headers, body, expected: [200] });
    if (element(xml, 'ETag') === null) throw failure('CompleteMultipartUpload', 200, element(xml, 'Code'));
  }

  async abortMultipart(key: string, multipartId: string): Promise<void> {
    const { body } = await this.#call({ method: 'DELETE', key, query: [['uploadId', multipartId]], expected: [204, 404] });
    await whole(body.dump());
  }

  async *listMultiparts(prefix: string): AsyncGenerator<{ readonly key: string; readonly multipartId: string; readonly startedAt: Date }> {
    let next: readonly (readonly [string, string])[] | null = [];
    do {
      const xml: string = await this.#xml({ method: 'GET', query: [['uploads', ''], ['prefix', prefix], ...next], expected: [200] });
      for (const entry of elements(xml, 'Upload'))
        yield {
          key: element(entry, 'Key') ?? '',
          multipartId: element(entry, 'UploadId') ?? '',
          startedAt: new Date(element(entry, 'Initiated') ?? 0),
        };
      next =
        element(xml, 'IsTruncated') === 'true'
          ? [
              ['key-marker', element(xml, 'NextKeyMarker') ?? ''],
              ['upload-id-marker', element(xml, 'NextUploadIdMarker') ?? ''],
            ]
          : null;
    } while (next !== null);
  }

  async #xml(call: S3Call): Promise<string> {
    const { body } = await this.#call(call);
    return whole(body.text());
  }

  /** In a span of its own, without the key: it names an owner and a file. */
  #call(call: S3Call): Promise<Dispatcher.ResponseData> {
    const tracing = activeTracing();
    if (tracing === undefined) return this.#request(call);
    const attributes = { 'http.request.method': call.method, ...serverAttributes(this.#place.origin) };
    return tracing.span(call.method, { kind: 'client', attributes }, async (span) => {
      const found = await this.#request(call);
      span?.set({ 'http.response.status_code': found.statusCode });
      return found;
    });
  }

  /** One request. What is not expected, or never arrives, is `store_unavailable`; its cause names the operation and S3's code, nothing else. */
  async #request({ method, key, query = [], headers = {}, body, expected }: S3Call): Promise<Dispatcher.ResponseData> {
    const { origin, base } = this.#place;
    const path = key === undefined ? base || '/' : this.#path(key);
    const operation = `${method} ${query[0]?.[0] ?? 'object'}`;
    try {
      const context = await this.#context();
      const payload = body === undefined ? undefined : createHash('sha256').update(body).digest('hex');
      const signed = signHeaders({ method, origin, path, query, headers }, context, payload);
      const search = query.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join('&');
      // With the first request: most starts send none, and its modules take a tenth of a second to load.
      const undici = await import('undici');
      this.#agent ??= new undici.Agent({ connect: { timeout: 10_000 }, headersTimeout: 60_000, bodyTimeout: 60_000 });
      const found = await undici.request(`${origin}${encodePath(path)}${search === '' ? '' : `?${search}`}`, {
        method,
        headers: signed,
        body: body ?? null,
        dispatcher: this.#agent,
      });
      if (expected.includes(found.statusCode)) return found;
      throw failure(operation, found.statusCode, element((await found.body.text()).slice(0, 4096), 'Code'));
    } catch (error) {
      if (isKitError(error)) throw error;
      throw unreachable(operation, error);
    }
  }

  #path(key: string): string {
    return `${this.#place.base}/${key}`;
  }

  async #context(): Promise<SigningContext> {
    return { credentials: await this.#credentials(), region: this.#place.region, now: this.#clock.now() };
  }
}

function failure(operation: string, status: number, code: string | null) {
  return uploadErrors.store_unavailable({ message: `The upload store answered ${operation} with ${status} ${code ?? ''}`.trimEnd() });
}

function storedObject(headers: Dispatcher.ResponseData['headers']): StoredObject {
  const text = (name: string) => headerText(headers, name);
  return {
    size: Number(text('content-length')),
    contentType: text('content-type'),
    etag: unquoted(text('etag')) ?? '',
    versionId: text('x-amz-version-id'),
    checksumSha256: text('x-amz-checksum-sha256'),
    modifiedAt: new Date(text('last-modified') ?? 0),
  };
}

function headerText(headers: Dispatcher.ResponseData['headers'], name: string): string | null {
  const value = headers[name];
  return value === undefined ? null : Array.isArray(value) ? (value[0] ?? null) : value;
}

function unquoted(etag: string | null): string | null {
  return etag === null ? null : etag.replaceAll('"', '');
}

function quoted(etag: string): string {
  return `"${etag}"`;
}
