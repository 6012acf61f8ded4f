import { defineErrors } from '../../errors/catalog.ts';

/** Errors of API keys. */
export const apiKeyErrors = defineErrors('apikeys', {
  invalid_api_key: {
    status: 401,
    detail: 'The API key is not valid.',
    remedy: 'Send a working key. Unknown, mistyped, expired and revoked keys and keys of a deactivated owner return this same error.',
  },
  keys_cannot_manage_keys: {
    status: 403,
    detail: 'An API key cannot manage API keys.',
    remedy: 'Log in as the owner. API keys can never create keys or change their limits.',
  },
  impersonated_session: {
    status: 403,
    detail: 'A session that acts as another user cannot create API keys.',
    remedy: 'End the impersonation. The user creates the key, or staff create it under their own name.',
  },
  api_key_not_found: {
    status: 404,
    detail: 'There is no such API key.',
    remedy: 'Check the id. Keys of other users return the same error.',
  },
  owner_not_found: { status: 404, detail: 'There is no such user.', remedy: 'Name an existing user as the owner.' },
  key_revoked: {
    status: 409,
    detail: 'The API key is revoked.',
    remedy: 'Revocation is permanent. Create a new key.',
  },
  service_user_not_found: {
    status: 404,
    detail: 'There is no such service user.',
    remedy: 'Check the id. Service users of other tenants return the same error.',
  },
  service_user_limit_reached: {
    status: 409,
    detail: 'The tenant has as many service users as allowed.',
    remedy: 'Delete a service user that is no longer used; `limit` is how many a tenant can have.',
    members: { limit: { type: 'integer', description: 'The number of service users that a tenant can have.' } },
  },
  key_limit_reached: {
    status: 409,
    detail: 'The owner has as many active keys as allowed.',
    remedy: 'Revoke a key that is no longer used; `limit` is how many may be active.',
    members: { limit: { type: 'integer', description: 'The number of keys that may be active.' } },
  },
});
