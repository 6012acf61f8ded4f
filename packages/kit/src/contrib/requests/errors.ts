import { defineErrors } from '../../errors/catalog.ts';

/** Errors of requests. */
export const requestErrors = defineErrors('requests', {
  request_quota_exceeded: {
    status: 429,
    detail: 'The quota of requests is used up.',
    remedy: 'Wait until `renews_at`, or ask for a larger quota. Sending the request again before then changes nothing.',
    members: {
      policy: { type: 'string', description: 'Whose quota: `quota_key`, `quota_owner` or `quota_tenant`.' },
      quota: { type: 'string', description: 'How many requests there may be in a period: `10000/month`.' },
      renews_at: { type: 'string', format: 'date-time', description: 'When the next period begins.' },
    },
  },
});
