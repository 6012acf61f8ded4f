import { Permission } from '../../../permissions/permission.ts';
import { API_KEY_SCHEME } from './current-key.ts';
import { apiKeyErrors } from '../errors.ts';

/** Keys, whatever their scopes, neither mint credentials nor change their own limits. Decided before a body is read. */
export const notByApiKey = new Permission({
  name: 'notByApiKey',
  kind: 'not_by_api_key',
  evaluate: ({ principal }) => principal?.scheme !== API_KEY_SCHEME,
  denial: () => apiKeyErrors.keys_cannot_manage_keys(),
});
