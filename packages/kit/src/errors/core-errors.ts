import { defineErrors } from './catalog.ts';

/** Codes any route may answer with. Modules add their own catalogs. */
export const coreErrors = defineErrors('core', {
  validation_error: {
    status: 422,
    detail: 'The request is well formed, but some of its values are invalid.',
    remedy: '`errors` lists each error with its location. Correct all of them and send the request again.',
  },
  malformed_body: {
    status: 400,
    detail: 'The request body cannot be read.',
    remedy: 'Send valid UTF-8 JSON without duplicate keys; `detail` says where reading stopped.',
  },
  too_deep: {
    status: 400,
    detail: 'The request body is nested too deeply.',
    remedy: 'Flatten the document. Default limit: 32 levels.',
    members: { depth_max: { type: 'integer', description: 'The limit of nested arrays and objects.' } },
  },
  too_many_members: {
    status: 400,
    detail: 'The request body has too many members.',
    remedy: 'Send less in one request. Default limit: 10,000 members of all objects together.',
    members: { members_max: { type: 'integer', description: 'The limit of members of all objects together.' } },
  },
  too_many_items: {
    status: 400,
    detail: 'The arrays of the request body have too many items.',
    remedy: 'Send less in one request; the limit is 50,000 items of all arrays together unless the application sets another one.',
    members: { items_max: { type: 'integer', description: 'The limit of items of all arrays together.' } },
  },
  unexpected_body: {
    status: 400,
    detail: 'This operation takes no request body.',
    remedy: 'Send the request without content; use query parameters, or the QUERY method where offered.',
  },
  malformed_url: { status: 400, detail: 'The URL cannot be decoded.', remedy: 'Percent-encode the path and the query string as UTF-8.' },
  malformed_request: { status: 400, detail: 'The request is not valid HTTP.', remedy: 'Check the client or the proxy in front of it.' },
  not_authenticated: {
    status: 401,
    detail: 'Authentication is required.',
    remedy: 'Send credentials of one of the kinds named in `WWW-Authenticate`.',
  },
  invalid_credentials: { status: 401, detail: 'The credentials are not valid.', remedy: 'Obtain new credentials.' },
  permission_denied: {
    status: 403,
    detail: 'You do not have permission to perform this action.',
    remedy: 'Ask for the permission; sending the same credentials again will not help.',
    members: {
      action: { type: 'string', description: 'The missing action on the object.' },
      fields: { type: 'array', items: { type: 'string' }, description: 'The fields that you may not write.' },
    },
  },
  scope_required: {
    status: 403,
    detail: 'This operation needs credentials that carry scopes.',
    remedy: 'Use an API key that has the scope named in `required_scope`.',
    members: { required_scope: { type: 'string', description: 'The scope that the operation requires.' } },
  },
  insufficient_scope: {
    status: 403,
    detail: 'The credentials lack the scope this operation needs.',
    remedy: 'Use a key that has the scope named in `required_scope`.',
    members: { required_scope: { type: 'string', description: 'The scope that the operation requires.' } },
  },
  second_factor_required: {
    status: 403,
    detail: 'Staff rights need a second factor.',
    remedy: 'Set up one-time codes for your account, then log in with one.',
  },
  recent_login_required: {
    status: 403,
    detail: 'This change needs a login within the last 10 minutes.',
    remedy: 'Prove that you are there with `POST presence` of the account, then send the request again.',
  },
  not_a_member: {
    status: 403,
    detail: 'You are not a member of this tenant.',
    remedy: 'Name a tenant that you belong to, or ask one of its administrators to add you.',
  },
  view_ended: {
    status: 403,
    detail: 'You no longer look at the application as another user.',
    remedy: 'End the view in the admin site. Begin another one there if you still need it.',
  },
  viewing_only: {
    status: 403,
    detail: 'You look as another user: you can read, and neither change anything nor take files, links or one-time values along.',
    remedy: 'End the view in the admin site to act as yourself.',
  },
  tenant_suspended: {
    status: 403,
    detail: 'This tenant is suspended: nobody can work in it for now.',
    remedy: 'Ask the provider of this API. Nothing is lost, and everything continues when the tenant is resumed.',
  },
  tenant_required: {
    status: 403,
    detail: 'A tenant is required: name one that you are a member of, in the header, path or host of this API.',
    remedy: 'Name the tenant as the API expects it, or use a credential that belongs to a tenant.',
  },
  tenant_conflict: {
    status: 400,
    detail: 'The request names more than one tenant: the header, the path, the host and the credential must agree.',
    remedy: 'Name the tenant once, or use a credential that belongs to the tenant.',
  },
  csrf_failed: {
    status: 403,
    detail: 'CSRF validation failed.',
    remedy: 'Send the CSRF token with every unsafe request that is authenticated by a cookie.',
  },
  not_found: { status: 404, detail: 'Not found.', remedy: 'Check the URL. You get the same error for resources that you cannot access.' },
  method_not_allowed: {
    status: 405,
    detail: 'This URL does not support the method.',
    remedy: 'Use a method named in `Allow`.',
    members: { allowed_methods: { type: 'array', items: { type: 'string' }, description: 'The methods that this URL supports.' } },
  },
  not_acceptable: {
    status: 406,
    detail: 'No representation matches the `Accept` header.',
    remedy: 'Accept one of the offered media types.',
  },
  unsupported_api_version: {
    status: 406,
    detail: 'The version of the API named in `Accept-Version` is not supported.',
    remedy: 'Use one of the versions in `supported`, or leave the header out for the default.',
    members: { supported: { type: 'array', items: { type: 'string' }, description: 'The versions that are supported.' } },
  },
  request_timeout: { status: 408, detail: 'The request did not arrive in time.', remedy: 'Send it again, faster or in smaller parts.' },
  conflict: { status: 409, detail: 'The request conflicts with the current state.', remedy: 'Fetch the current state, then retry.' },
  precondition_failed: {
    status: 412,
    detail: 'The record was changed meanwhile.',
    remedy: 'Read the record again, decide again, and send the new tag (`etag`) in `If-Match`.',
    members: { etag: { type: 'string', description: 'The current version of the record.' } },
  },
  precondition_required: {
    status: 428,
    detail: 'This operation needs an `If-Match` header.',
    remedy: 'Send the `ETag` of your last read in `If-Match`.',
  },
  body_too_large: {
    status: 413,
    detail: 'The request body is too large.',
    remedy: 'Send less; `bytes_max` is the limit in bytes.',
    members: {
      bytes_max: { type: 'integer', description: 'The limit in bytes.' },
      rows_max: { type: 'integer', description: 'The limit of rows in a file.' },
      columns_max: { type: 'integer', description: 'The limit of columns in a file.' },
    },
  },
  uri_too_long: { status: 414, detail: 'The URL is too long.', remedy: 'Shorten it, or use the QUERY method where offered.' },
  unsupported_media_type: {
    status: 415,
    detail: 'The media type of the request body is not supported.',
    remedy: 'Send `Content-Type: application/json`.',
    members: { allowed: { type: 'array', items: { type: 'string' }, description: 'The media types that are accepted.' } },
  },
  headers_too_large: { status: 431, detail: 'The request headers are too large.', remedy: 'Send fewer or shorter headers.' },
  too_many_streams: {
    status: 429,
    detail: 'You have too many event streams open.',
    remedy: 'Close streams that you no longer read, then open another one. `streams_max` is the limit per caller and process.',
    members: { streams_max: { type: 'integer', description: 'The limit per caller and process.' } },
  },
  throttled: {
    status: 429,
    detail: 'Too many requests.',
    remedy: 'Wait for the seconds in `Retry-After`.',
    members: { policy: { type: 'string', description: 'The limit that was reached.' } },
  },
  too_many_exports: {
    status: 429,
    detail: 'You have too many exports running.',
    remedy: 'Wait until one of your exports has ended, then start another one. `exports_max` is the limit per caller and process.',
    members: { exports_max: { type: 'integer', description: 'The limit per caller and process.' } },
  },
  internal_error: {
    status: 500,
    detail: 'Something went wrong on our side.',
    remedy: 'Contact support with the `request_id`. The server log has the cause.',
  },
  invalid_rule: {
    status: 500,
    detail: 'Something went wrong on our side.',
    remedy:
      'A rule of the application returned a value that its kind does not have, such as `undefined` from `rows`. The log names the rule and what it must return; nothing was read or changed.',
  },
  invalid_response: {
    status: 500,
    detail: 'The response does not match its schema.',
    remedy: 'Correct the handler or its response schema; `errors` names each place. Production sends such responses and logs them.',
  },
  unavailable: { status: 503, detail: 'The service is not available right now.', remedy: 'Try again later.', retryAfterSeconds: 5 },
  deadline_exceeded: { status: 503, detail: 'The operation took too long and was stopped.', remedy: 'Try again later, or ask for less.' },
});
