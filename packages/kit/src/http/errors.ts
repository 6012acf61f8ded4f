import { defineErrors } from '../errors/catalog.ts';

export const idempotencyErrors = defineErrors('idempotency', {
  invalid_idempotency_key: {
    status: 400,
    detail: 'The `Idempotency-Key` must be 1 to 255 visible ASCII characters.',
    remedy: 'Send one key per operation, for example a UUID, and the same key when you repeat it.',
  },
  idempotency_not_supported: {
    status: 400,
    detail: 'This operation does not support the `Idempotency-Key` header. Nothing was done.',
    remedy:
      'Send the request without the header. To support keys, set `idempotent` on the route, or `idempotency` on a CRUD controller that admits no anonymous callers.',
  },
  idempotency_key_required: {
    status: 400,
    detail: 'This operation needs an `Idempotency-Key` header.',
    remedy: 'Generate a key (a UUID) per operation, and send the same key when you repeat the operation.',
  },
  idempotency_key_reused: {
    status: 422,
    detail: 'The `Idempotency-Key` was used for another request.',
    remedy: 'Generate a new key for every operation. Reuse a key only to repeat exactly the same request.',
  },
  request_in_progress: {
    status: 409,
    detail: 'A request with this `Idempotency-Key` is still in progress.',
    remedy: 'Retry after the number of seconds in `Retry-After` to get its response.',
  },
  too_many_idempotency_keys: {
    status: 429,
    detail: 'You have used too many idempotency keys in the last 24 hours. Nothing was done.',
    remedy:
      'Wait until older keys have expired, or send the request without a key where the operation allows it. `keys_max` is the limit per caller; `idempotencyRecordsMax` of the app sets it.',
    retryAfterSeconds: 60,
    members: { keys_max: { type: 'integer', description: 'The limit per caller.' } },
  },
  idempotency_lost: {
    status: 409,
    detail: 'Another attempt with this `Idempotency-Key` took over. This one changed nothing.',
    remedy: 'Repeat the request with the same key: you get the response of the other attempt.',
  },
  response_not_kept: {
    status: 409,
    detail: 'The operation was completed, but its response cannot be replayed.',
    remedy: 'Fetch the affected record. Do not retry with a new key: that would run the operation again.',
  },
});
