import type { Readable } from 'node:stream';
import type { Db } from '../../../db/engine/db.ts';
import { Controller } from '../../../http/compile/controller.ts';
import { controllerOptions } from '../../../http/declare/controller-options.ts';
import { jsonSchema } from '../../../http/declare/json-schema.ts';
import { raw } from '../../../http/declare/raw.ts';
import { route } from '../../../http/declare/route.ts';
import { Permission, type PermissionContext } from '../../../permissions/permission.ts';
import { contentDisposition } from '../declare/file-name.ts';
import { uploadErrors } from '../errors.ts';
import { uploadsOf } from '../rows/in-use.ts';
import { mediaType } from '../declare/media-type.ts';
import { BYTES_MAX } from '../declare/policy.ts';
import { changeState, findUpload } from '../rows/store.ts';
import { DiskStore } from '../stores/disk-store.ts';
import { verifiesAddress, type SignedAddress } from '../stores/url-signature.ts';
import type { Upload } from '../declare/upload.ts';

const text = { type: 'string' };
const FileId = jsonSchema<{ readonly id: string }>({
  type: 'object',
  properties: { id: { type: 'string', format: 'uuid' } },
  required: ['id'],
});
const AddressQuery = jsonSchema<Record<string, string>>({
  type: 'object',
  properties: { expires: text, length: text, type: text, sha256: text, part: text, disposition: text, signature: text },
  additionalProperties: false,
});

/** The address as its signature was made for, read from the request itself. */
function addressOf({ method, url }: Pick<PermissionContext, 'method' | 'url'>): SignedAddress & { readonly signature: string } {
  const { pathname, searchParams } = new URL(url, 'http://app');
  const number = (name: string) => (/^\d{1,15}$/.test(searchParams.get(name) ?? '') ? Number(searchParams.get(name)) : undefined);
  return {
    method: method === 'HEAD' ? 'GET' : (method as 'PUT' | 'GET'),
    id: pathname.replace(/\/$/, '').split('/').at(-1)?.toLowerCase() ?? '',
    expires: number('expires') ?? 0,
    length: number('length'),
    type: searchParams.get('type') ?? undefined,
    sha256: searchParams.get('sha256') ?? undefined,
    part: number('part'),
    disposition: (searchParams.get('disposition') as 'inline' | 'attachment' | null) ?? undefined,
    signature: searchParams.get('signature') ?? '',
  };
}

function verdictOf(context: PermissionContext): 'valid' | 'expired' | 'invalid' {
  const { urlKeys, clock } = uploadsOf(context.db);
  const { signature, ...address } = addressOf(context);
  if (!verifiesAddress(address, signature, urlKeys)) return 'invalid';
  return address.expires * 1000 < clock.now().getTime() ? 'expired' : 'valid';
}

/** Decided before a byte of the body is read. */
const signedAddress = new Permission({
  name: 'signedAddress',
  kind: 'signed_address',
  evaluate: (context) => verdictOf(context) === 'valid',
  denial: (context) => (verdictOf(context) === 'expired' ? uploadErrors.upload_url_expired() : uploadErrors.invalid_upload_url()),
});

const signed = { params: FileId, query: AddressQuery, permission: signedAddress, auth: [], hidden: true } as const;

/** Serves the signed addresses of the disk store. The signature is the credential: sessions and keys do not matter here. */
export class FileController extends Controller {
  static override readonly tags: readonly string[] = ['uploads'];
  static readonly [controllerOptions] = {};

  receive = route.put('/:id', { ...signed, body: raw(['*/*'], { stream: true, bytesMax: BYTES_MAX }) }, async ({ request, body, db }) => {
    const address = addressOf({ method: 'PUT', url: request.raw.url ?? '' });
    refuseOtherHeaders(address, request.headers);
    const upload = await findUpload(db, address.id);
    if (upload === null) throw uploadErrors.upload_not_found();
    if (upload.state !== 'pending' || (address.part === undefined && (await hasArrived(db, upload)))) throw uploadErrors.upload_url_used();
    await receiveFile(db, upload, address, body);
  });

  send = route.get('/:id', { ...signed, response: raw('application/octet-stream') }, async ({ request, reply, db }) => {
    const { id, disposition } = addressOf({ method: 'GET', url: request.raw.url ?? '' });
    const upload = await findUpload(db, id);
    if (upload === null) throw uploadErrors.upload_not_found();
    if (upload.state !== 'complete' || upload.final_key === null) throw uploadErrors.not_ready({ extensions: { state: upload.state } });
    // RFC 9110: ranges are of GET alone. Nothing in the response can be compared with an If-Range, so it never holds.
    const hasRange = request.method === 'GET' && request.headers['if-range'] === undefined;
    const range = hasRange ? rangeOf(request.headers.range, Number(upload.size)) : null;
    const file = await uploadsOf(db).store.read(upload.final_key, { ...range, ifMatch: upload.etag ?? '' });
    void reply.headers({
      'content-type': upload.content_type,
      'content-length': String(range === null ? Number(upload.size) : range.end - range.start),
      'content-disposition': contentDisposition(disposition === 'inline' ? 'inline' : 'attachment', upload.filename),
      'x-content-type-options': 'nosniff',
      'content-security-policy': "sandbox; default-src 'none'",
      'cross-origin-resource-policy': 'same-site',
      'cache-control': 'private, no-store',
      'accept-ranges': 'bytes',
    });
    if (range !== null) void reply.code(206).header('content-range', `bytes ${range.start}-${range.end - 1}/${upload.size}`);
    return file;
  });
}

function refuseOtherHeaders({ length, type }: SignedAddress, headers: Readonly<Record<string, string | string[] | undefined>>): void {
  const given = headers['content-length'];
  if (given !== undefined && Number(given) > (length ?? 0)) throw uploadErrors.upload_too_large({ extensions: { bytes_max: length } });
  if (given !== undefined && Number(given) !== length)
    throw uploadErrors.upload_mismatch({ detail: `${length} bytes were announced; Content-Length is another number.` });
  if (type !== undefined && mediaType(String(headers['content-type'] ?? '')) !== type)
    throw uploadErrors.upload_mismatch({ detail: `${type} was announced; Content-Type is another type.` });
}

async function receiveFile(db: Db, upload: Upload, { length = 0, sha256, part }: SignedAddress, body: Readable): Promise<void> {
  const { store, clock } = uploadsOf(db);
  if (!(store instanceof DiskStore)) throw uploadErrors.upload_not_found();
  const { id, pending_key: key, multipart_id } = upload;
  const arrival = { key, length, sha256: sha256 ?? null };
  if (part !== undefined) {
    if (multipart_id === null) throw uploadErrors.not_multipart();
    await store.receivePart(body, multipart_id, part, { ...arrival, admit: () => requirePending(db, id) });
    return;
  }
  // The caller who sets the time may publish the file: an address works once, however many use it at the same moment.
  const { received_at: at } = upload;
  const unused = at === null ? { sql: 'received_at is null', values: [] } : { sql: 'received_at = ?1', values: [at] };
  const admit = async () => {
    if ((await changeState(db, id, 'pending', { received_at: clock.now() }, unused)) === null) throw uploadErrors.upload_url_used();
  };
  await store.receive(body, { ...arrival, admit });
  const current = await findUpload(db, id);
  // Deleted or expired in the moment between: the file would never be looked for again.
  if (current === null || current.state === 'expired' || current.state === 'rejected') {
    await store.remove(key);
    throw current === null ? uploadErrors.upload_not_found() : uploadErrors.upload_expired();
  }
}

/** The time alone does not count: a process may have ended after it had set it, and before the file got its name. */
async function hasArrived(db: Db, { received_at, pending_key }: Upload): Promise<boolean> {
  return received_at !== null && (await uploadsOf(db).store.head(pending_key)) !== null;
}

async function requirePending(db: Db, id: string): Promise<void> {
  if ((await findUpload(db, id))?.state !== 'pending') throw uploadErrors.upload_url_used();
}

/** A single range, for browsers that play or resume; several, and other units, get the whole file. `end` is exclusive. */
export function rangeOf(header: string | undefined, size: number): { readonly start: number; readonly end: number } | null {
  const [, first, last] = /^bytes=(\d*)-(\d*)$/i.exec(header ?? '') ?? [];
  if (first === undefined || last === undefined || (first === '' && last === '')) return null;
  // `bytes=-500`: the last 500.
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size : Math.min(Number(last) + 1, size);
  // RFC 9110: the last byte before the first is not a range at all.
  if (first !== '' && last !== '' && Number(last) < start) return null;
  if (start >= end) throw uploadErrors.range_not_satisfiable({ headers: { 'content-range': `bytes */${size}` } });
  return { start, end };
}
