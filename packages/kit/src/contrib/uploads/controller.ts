import type { App } from '../../app/declare/module.ts';
import { requiredModule } from '../../app/declare/required-module.ts';
import type { User } from '../../auth/people/principal.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { FaultCollector } from '../../errors/fault-collector.ts';
import { Controller } from '../../http/compile/controller.ts';
import { controllerOptions } from '../../http/declare/controller-options.ts';
import type { HandlerContext } from '../../http/declare/handler-context.ts';
import { USES_TENANT } from '../../http/compile/tenant-header.ts';
import { route } from '../../http/declare/route.ts';
import type { Fault } from '../../options/fault.ts';
import { parsedBy } from '../../options/value-rule.ts';
import { hasScopes } from '../../permissions/built-ins.ts';
import { completeUpload } from './life/complete.ts';
import { createUpload } from './life/create.ts';
import { removeUpload } from './life/delete.ts';
import { downloadUrl } from './rows/download.ts';
import { uploadErrors } from './errors.ts';
import { resumeParts, type RequestedPart } from './life/parts.ts';
import { collectFileFaults, readUploadPolicy, type CompletePolicy, type UploadPolicy } from './declare/policy.ts';
import {
  CompleteBody,
  CreateBody,
  PartsBody,
  PartsOut,
  ReadQuery,
  UploadCreated,
  UploadId,
  UploadOut,
  UploadRead,
  type CreateFields,
  type PartFields,
} from './schemas.ts';
import { findOwnUpload, type UploadScope } from './rows/store.ts';
import { partCount, uploadRecord, type Upload } from './declare/upload.ts';

type Context = Pick<HandlerContext<unknown, unknown, unknown, unknown, User>, 'db' | 'caller' | 'user' | 'principal' | 'requestId'>;

// Sessions may do everything here; credentials that carry scopes, such as API keys, need the one of the route.
const permission = hasScopes({ allowUnscoped: true });
const reads = { permission, scope: 'uploads:read', metadata: USES_TENANT } as const;
const writes = { permission, scope: 'uploads:write', metadata: USES_TENANT } as const;
const notFound = uploadErrors.upload_not_found;
const { upload_expired, store_unavailable } = uploadErrors;

/** Users send and fetch their own files. Mounted where the app likes: `'/uploads': UploadController`. A subclass says what it accepts. */
export class UploadController extends Controller {
  static override readonly tags: readonly string[] = ['uploads'];

  static readonly [controllerOptions] = { policy: parsedBy((policy: UploadPolicy) => readUploadPolicy('policy', policy)) };

  /** What is accepted; of a subclass, instead of the defaults. */
  static readonly policy: UploadPolicy = {};

  // Read when the controller is created: a policy with faults stops the start.
  readonly #policy: CompletePolicy = readUploadPolicy(
    `${this.constructor.name}.policy`,
    (this.constructor as typeof UploadController).policy,
  );

  create = route.post(
    '/',
    {
      ...writes,
      body: CreateBody,
      validate: (body, { request }) => this.#check(body, request.body),
      response: UploadCreated,
      status: 201,
      raises: [
        uploadErrors.type_not_allowed,
        uploadErrors.upload_too_large,
        uploadErrors.checksum_required,
        uploadErrors.quota_exceeded,
        store_unavailable,
      ],
      metadata: { ...USES_TENANT, uploads: { policy: this.#policy } },
      summary: 'Create an upload and get a presigned URL',
      description: 'Send the file with `method`, `url` and `headers` as they are, then complete the upload.',
    },
    async (context) => {
      const { body, reply } = context;
      const created = await createUpload(context.db, {
        scope: await scopeOf(context),
        policy: this.#policy,
        filename: body.filename,
        contentType: body.content_type,
        size: body.size,
        checksumSha256: body.checksum_sha256,
        multipart: body.multipart,
        partChecksums: body.part_checksums_sha256,
        ...author(context),
      });
      void reply.header('cache-control', 'no-store');
      const { upload } = created;
      if ('request' in created) return { ...uploadRecord(upload), ...created.request };
      return {
        ...uploadRecord(upload),
        multipart: { part_size: upload.part_size ?? 0, part_count: partCount(upload), parts: created.parts },
      };
    },
  );

  read = route.get(
    '/:id',
    {
      ...reads,
      params: UploadId,
      query: ReadQuery,
      response: UploadRead,
      raises: [notFound, uploadErrors.not_ready, uploadErrors.upload_changed, store_unavailable],
      summary: 'Get an upload; with `url=true`, also a presigned URL of its file',
    },
    async (context) => {
      const upload = await ownUpload(context, context.params.id);
      if (context.query.url !== true) return uploadRecord(upload);
      // A link works for whoever has it, and longer than the view.
      if (context.principal?.isViewing === true) throw coreErrors.viewing_only();
      const { url, expiresAt } = await downloadUrl(context.db, upload);
      void context.reply.header('cache-control', 'no-store');
      return { ...uploadRecord(upload), url, url_expires_at: expiresAt };
    },
  );

  parts = route.post(
    '/:id/parts',
    {
      ...writes,
      params: UploadId,
      body: PartsBody,
      response: PartsOut,
      raises: [notFound, uploadErrors.not_multipart, upload_expired, store_unavailable],
      summary: 'Get presigned URLs for parts of a multipart upload, and the parts that have arrived',
      description: 'Also used to resume an interrupted upload. Each call keeps the upload open, up to seven days after creation.',
    },
    async (context) => {
      const own = await ownUpload(context, context.params.id);
      const { upload, parts, uploaded } = await resumeParts(context.db, own, this.#policy, requested(context.body.parts));
      void context.reply.header('cache-control', 'no-store');
      return {
        expires_at: upload.expires_at,
        part_size: upload.part_size ?? 0,
        part_count: partCount(upload),
        parts,
        uploaded: uploaded.map(({ number, size, checksumSha256 }) => ({ number, size, checksum_sha256: checksumSha256 })),
      };
    },
  );

  complete = route.post(
    '/:id/complete',
    {
      ...writes,
      params: UploadId,
      body: CompleteBody,
      response: UploadOut,
      raises: [
        notFound,
        upload_expired,
        uploadErrors.not_uploaded,
        uploadErrors.upload_mismatch,
        uploadErrors.checksum_mismatch,
        uploadErrors.upload_changed,
        store_unavailable,
      ],
      summary: 'Complete an upload after its file was sent',
      description:
        'Verifies size, type, content and checksum. Idempotent. With a scanner, the state is `quarantined` until the scan is complete.',
    },
    async (context) => {
      const upload = await ownUpload(context, context.params.id);
      const parts = requested(context.body.parts ?? []);
      return uploadRecord(await completeUpload(context.db, upload, { parts, ...author(context) }));
    },
  );

  remove = route.delete(
    '/:id',
    {
      ...writes,
      params: UploadId,
      raises: [notFound, uploadErrors.upload_in_use],
      summary: 'Delete an upload and its file',
    },
    async (context) => {
      await removeUpload(context.db, await scopeOf(context), context.params.id, author(context));
    },
  );

  /** Reported together with what the schema refuses; `createUpload` checks again. */
  #check(body: Partial<CreateFields>, sent: unknown): void {
    const faults = new FaultCollector();
    const { content_type: contentType, size, checksum_sha256: checksumSha256, multipart } = body;
    // A member that the schema refuses is not in `body`, and not missing.
    const given = (typeof sent === 'object' && sent !== null ? sent : {}) as Partial<CreateFields>;
    collectFileFaults(
      this.#policy,
      {
        contentType,
        size,
        checksumSha256: (given.checksum_sha256 ?? null) === null ? null : checksumSha256,
        multipart: given.multipart === undefined ? false : multipart,
      },
      faults,
    );
    faults.throwIfAny();
  }

  faults(app: App): readonly Fault[] {
    return requiredModule(app, 'uploads', this.constructor.name, 'uploads()');
  }
}

function requested(parts: readonly PartFields[]): readonly RequestedPart[] {
  return parts.map(({ number, checksum_sha256 }) => ({ number, checksumSha256: checksum_sha256 }));
}

async function scopeOf({ caller, user }: Context): Promise<UploadScope> {
  return { owner: user.id, tenantKey: (await caller()).tenant ?? '' };
}

/** Another owner's or tenant's upload returns the same 404 as one that does not exist. */
async function ownUpload(context: Context, id: string): Promise<Upload> {
  const upload = await findOwnUpload(context.db, await scopeOf(context), id);
  if (upload === null) throw uploadErrors.upload_not_found();
  return upload;
}

function author({ principal, requestId }: Context) {
  return { by: principal, requestId };
}
