import { defineErrors } from '../../errors/catalog.ts';

/** Errors of file uploads. */
export const uploadErrors = defineErrors('uploads', {
  upload_not_found: {
    status: 404,
    detail: 'There is no such upload.',
    remedy: 'Check the id. Uploads of other users return the same error.',
  },
  type_not_allowed: {
    status: 415,
    detail: 'Files of this type are not accepted here.',
    remedy: 'Send a file of a type in `allowed_types`.',
    members: { allowed_types: { type: 'array', items: { type: 'string' }, description: 'The media types that are accepted.' } },
  },
  upload_too_large: {
    status: 413,
    detail: 'The file is too large.',
    remedy: 'Send a smaller file; `bytes_max` is the limit in bytes.',
    members: { bytes_max: { type: 'integer', description: 'The limit in bytes.' } },
  },
  checksum_required: {
    status: 422,
    detail: 'A SHA-256 checksum is required here.',
    remedy: 'Send `checksum_sha256` in base64; of a multipart upload, one for each part.',
  },
  checksum_mismatch: {
    status: 422,
    detail: 'The checksum does not match the declared one.',
    remedy: 'The file was corrupted in transit, or another file was sent. Create a new upload and send it again.',
  },
  upload_mismatch: {
    status: 422,
    detail: 'The file does not match its declaration.',
    remedy: '`detail` describes the difference: size, type or content. Create a new upload with the correct declaration.',
  },
  upload_infected: {
    status: 422,
    detail: 'The file was rejected by the scanner.',
    remedy: 'The file is removed. Send a clean one.',
  },
  quota_exceeded: {
    status: 409,
    detail: 'The owner has reached the limit for uploads.',
    remedy: 'Delete uploads that are no longer needed; `limit` is the limit that was reached.',
    members: {
      limit: { type: 'string', enum: ['count', 'bytes'], description: 'The limit that was reached.' },
      max: { type: 'integer', description: 'Its value.' },
      used: { type: 'integer', description: 'What the owner uses.' },
    },
  },
  not_uploaded: {
    status: 409,
    detail: 'The file has not arrived yet.',
    remedy: 'Send the file, or its missing parts, to the presigned URLs first; `missing_parts` lists some of them.',
    members: { missing_parts: { type: 'array', items: { type: 'integer' }, description: 'Some of the parts that have not arrived.' } },
  },
  not_ready: {
    status: 409,
    detail: 'The upload is not complete.',
    remedy: 'Only complete uploads can be downloaded or referenced; `state` is the current state.',
    members: { state: { type: 'string', description: 'The state of the upload.' } },
  },
  not_multipart: { status: 409, detail: 'The upload is not a multipart upload.', remedy: 'Create it with `multipart: true`.' },
  upload_changed: {
    status: 409,
    detail: 'The stored file is no longer the one that was completed.',
    remedy: 'It was changed or removed in the store. Upload it again.',
  },
  upload_in_use: {
    status: 409,
    detail: 'A record still refers to the upload.',
    remedy: 'Delete the record that refers to it first.',
  },
  upload_expired: {
    status: 410,
    detail: 'The upload was not completed in time.',
    remedy: 'Create a new upload and send the file again.',
  },
  invalid_upload_url: {
    status: 403,
    detail: 'The presigned URL is not valid.',
    remedy: 'Use the presigned URL, method and headers unchanged.',
  },
  upload_url_expired: { status: 410, detail: 'The presigned URL has expired.', remedy: 'Request a new one.' },
  upload_url_used: {
    status: 409,
    detail: 'The presigned URL has been used.',
    remedy: 'A presigned upload URL works once. Complete the upload, or create a new upload.',
  },
  range_not_satisfiable: {
    status: 416,
    detail: 'The file does not have the requested bytes.',
    remedy: '`Content-Range` has the size of the file. Ask for bytes below it, or leave `Range` out.',
  },
  store_unavailable: {
    status: 503,
    detail: 'The file store cannot be reached. Try again shortly.',
    remedy: 'Retry; no partial change was saved. The log has the cause.',
    retryAfterSeconds: 5,
  },
});
