import { idParams, jsonSchema, namedSchema } from '../../http/declare/json-schema.ts';
import { uploadErrors } from './errors.ts';
import type { Schema } from '../../http/declare/schema.ts';
import { CHECKSUM_PATTERN } from './declare/checksum.ts';
import { FIRST_PARTS } from './life/create.ts';
import type { UploadRecord } from './declare/upload.ts';
import { UPLOAD_STATES } from './declare/upload-state.ts';
import type { SignedRequest } from './declare/upload-store.ts';

const uuid = { type: 'string', format: 'uuid' };
const timestamp = { type: 'string', format: 'date-time' };
const timestampOrNull = { type: ['string', 'null'], format: 'date-time' };
const checksum = {
  type: 'string',
  pattern: CHECKSUM_PATTERN,
  description: 'SHA-256 of the bytes, in base64.',
  examples: ['47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='],
};
const size = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER };
const PART_NUMBER_MAX = 10_000;

function closed(
  properties: Record<string, object>,
  required: readonly string[] = Object.keys(properties),
): Readonly<Record<string, unknown>> {
  return { type: 'object', properties, required, additionalProperties: false };
}

const recordProperties = {
  id: uuid,
  state: { type: 'string', enum: [...UPLOAD_STATES] },
  filename: { type: 'string' },
  content_type: { type: 'string' },
  size,
  checksum_sha256: { type: ['string', 'null'] },
  reason: { type: ['string', 'null'], description: 'Why the file was rejected.' },
  created_at: timestamp,
  expires_at: { ...timestamp, description: 'When the upload expires.' },
  completed_at: timestampOrNull,
};

const signedProperties = {
  method: { type: 'string', enum: ['PUT', 'POST'] },
  url: {
    type: 'string',
    'x-sensitive': true,
    description: 'Presigned URL for this file. Resolve a relative URL against the base URL of the API.',
  },
  headers: {
    type: 'object',
    additionalProperties: { type: 'string' },
    description: 'Send these headers unchanged; most clients set `content-length` themselves.',
  },
  fields: { type: 'object', additionalProperties: { type: 'string' }, description: 'For POST: form fields to send before `file`.' },
};

const partProperties = { number: { type: 'integer' }, size, ...signedProperties };
const part = namedSchema('UploadPart', closed(partProperties, ['number', 'size', 'method', 'url', 'headers']));

export interface PartOut extends SignedRequest {
  readonly number: number;
  readonly size: number;
}

export interface CreatedOut extends UploadRecord, Partial<SignedRequest> {
  readonly multipart?: { readonly part_size: number; readonly part_count: number; readonly parts: readonly PartOut[] };
}

export interface ReadOut extends UploadRecord {
  readonly url?: string;
  readonly url_expires_at?: Date;
}

export const UploadOut = jsonSchema<UploadRecord>(closed(recordProperties), { name: 'Upload' });

export const UploadRead = jsonSchema<ReadOut>(
  closed(
    {
      ...recordProperties,
      url: { type: 'string', 'x-sensitive': true, description: 'A presigned URL of the file; it expires soon.' },
      url_expires_at: timestamp,
    },
    Object.keys(recordProperties),
  ),
  { name: 'UploadWithUrl' },
);

const multipart = closed({ part_size: { type: 'integer' }, part_count: { type: 'integer' }, parts: { type: 'array', items: part } });

export const UploadCreated = jsonSchema<CreatedOut>(
  closed({ ...recordProperties, ...signedProperties, multipart }, Object.keys(recordProperties)),
  { name: 'CreatedUpload' },
);

export interface CreateFields {
  readonly filename: string;
  readonly content_type: string;
  readonly size: number;
  readonly checksum_sha256?: string | null;
  readonly multipart?: boolean;
  readonly part_checksums_sha256?: readonly string[];
}

export const CreateBody = jsonSchema<CreateFields>(
  {
    ...closed(
      {
        filename: { type: 'string', minLength: 1, maxLength: 1024 },
        content_type: { type: 'string', minLength: 3, maxLength: 255 },
        size,
        checksum_sha256: { ...checksum, type: ['string', 'null'] },
        multipart: { type: 'boolean', description: 'Send the file in parts, and go on after an interruption.' },
        part_checksums_sha256: {
          type: 'array',
          maxItems: FIRST_PARTS,
          items: checksum,
          description: 'Of the first parts: their URLs come with the response, more by POST `/{id}/parts`.',
        },
      },
      ['filename', 'content_type', 'size'],
    ),
    examples: [{ filename: 'a.png', content_type: 'image/png', size: 9 }],
  },
  { name: 'UploadInput' },
);

export interface PartFields {
  readonly number: number;
  readonly checksum_sha256: string;
}

const partChecksum = namedSchema(
  'UploadPartChecksum',
  closed({ number: { type: 'integer', minimum: 1, maximum: PART_NUMBER_MAX }, checksum_sha256: checksum }),
);

const parts = (max: number) => ({
  type: 'array',
  maxItems: max,
  items: partChecksum,
});

export const PartsBody = jsonSchema<{ readonly parts: readonly PartFields[] }>(closed({ parts: parts(FIRST_PARTS) }));

export interface PartsResult {
  readonly expires_at: Date;
  readonly part_size: number;
  readonly part_count: number;
  readonly parts: readonly PartOut[];
  readonly uploaded: readonly { readonly number: number; readonly size: number; readonly checksum_sha256: string | null }[];
}

export const PartsOut = jsonSchema<PartsResult>(
  closed({
    expires_at: timestamp,
    part_size: { type: 'integer' },
    part_count: { type: 'integer' },
    parts: { type: 'array', items: part },
    uploaded: {
      type: 'array',
      items: namedSchema('UploadedPart', closed({ number: { type: 'integer' }, size, checksum_sha256: { type: ['string', 'null'] } })),
      description: 'What has arrived so far.',
    },
  }),
  { name: 'UploadParts' },
);

const completion = jsonSchema<{ readonly parts?: readonly PartFields[] }>(closed({ parts: parts(PART_NUMBER_MAX) }, []));

/** Nothing needs to be said to complete an upload: no body is an empty one. */
export const CompleteBody: Schema<{ readonly parts?: readonly PartFields[] }> = {
  '~standard': { ...completion['~standard'], validate: (body) => completion['~standard'].validate(body ?? {}) },
};

export const UploadId = idParams<{ readonly id: string }>({ id: uuid }, () => uploadErrors.upload_not_found());

export const ReadQuery = jsonSchema<{ readonly url?: boolean }>(
  closed({ url: { type: 'boolean', description: 'Also a short-lived address of the file.' } }, []),
);
