import { defineErrors } from '../../errors/catalog.ts';

export const uploadErrors = defineErrors('uploads', {
  upload_not_found: {
    status: 404,
    detail: 'There is no such upload.',
    remedy: 'Check the id; another user’s upload looks like a missing one.',
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
    detail: 'The checksum of the file is not the announced one.',
    remedy: 'The file was changed on its way or is another one. Create a new upload and send it again.',
  },
  upload_mismatch: {
    status: 422,
    detail: 'The file is not the announced one.',
    remedy: '`detail` says what differs: size, type or content. Create a new upload that says what the file really is.',
  },
  upload_infected: {
    status: 422,
    detail: 'The file was rejected by the scanner.',
    remedy: 'The file is removed. Send a clean one.',
  },
  quota_exceeded: {
    status: 409,
    detail: 'The owner has used up the space for uploads.',
    remedy: 'Delete uploads that are no longer needed; `limit` says which limit was reached.',
    members: {
      limit: { type: 'string', enum: ['count', 'bytes'], description: 'The limit that was reached.' },
      max: { type: 'integer', description: 'Its value.' },
      used: { type: 'integer', description: 'What the owner uses.' },
    },
  },
  not_uploaded: {
    status: 409,
    detail: 'The file has not arrived yet.',
    remedy: 'Send the file, or its missing parts, to the signed addresses first; `missing_parts` names some of them.',
    members: { missing_parts: { type: 'array', items: { type: 'integer' }, description: 'Some of the parts that have not arrived.' } },
  },
  not_ready: {
    status: 409,
    detail: 'The upload is not complete.',
    remedy: 'Only complete uploads can be downloaded or referred to; `state` is what this one is.',
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
    detail: 'Something still refers to the upload.',
    remedy: 'Remove what refers to it first.',
  },
  upload_expired: {
    status: 410,
    detail: 'The upload was not completed in time.',
    remedy: 'Create a new upload and send the file again.',
  },
  invalid_upload_url: {
    status: 403,
    detail: 'The address is not valid.',
    remedy: 'Use the signed address, method and headers exactly as they were given.',
  },
  upload_url_expired: { status: 410, detail: 'The address has expired.', remedy: 'Ask for a new one.' },
  upload_url_used: {
    status: 409,
    detail: 'The address has been used.',
    remedy: 'An upload address works once. Complete the upload, or create a new one.',
  },
  range_not_satisfiable: {
    status: 416,
    detail: 'The file does not have the requested bytes.',
    remedy: '`Content-Range` has the size of the file. Ask for bytes below it, or leave `Range` out.',
  },
  store_unavailable: {
    status: 503,
    detail: 'The file store cannot be reached. Try again shortly.',
    remedy: 'Retry; nothing was saved by half. The cause is in the log.',
    retryAfterSeconds: 5,
  },
});
