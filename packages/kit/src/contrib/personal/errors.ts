import { defineErrors } from '../../errors/catalog.ts';

/** Errors of a person's own data. */
export const personalErrors = defineErrors('personal', {
  export_not_found: {
    status: 404,
    detail: 'There is no export of your data, or it has expired.',
    remedy: 'Ask for one with POST export.',
  },
  export_not_ready: {
    status: 409,
    detail: 'The export of your data is not ready.',
    remedy: 'Read its state until it is `ready`. Ask for a new one where it is `failed`.',
  },
  erasure_not_found: {
    status: 404,
    detail: 'No erasure of your data was asked for.',
    remedy: 'Ask for it with POST erasure.',
  },
  erasure_begun: {
    status: 409,
    detail: 'The erasure of your data has begun and cannot be taken back.',
    remedy: 'Nothing: what is erased does not come back.',
  },
  data_is_held: {
    status: 409,
    detail: 'Your data must be kept for now, for a legal reason.',
    remedy: 'Ask the operator of the service why.',
  },
});
