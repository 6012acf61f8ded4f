import type { PortalDeclaration } from '../../app/admin/portal-page.ts';
import { defaultGrantable } from './key/grant.ts';
import type { KeyControllerOptions } from './resource.ts';
import { keyringOf } from './verify/keyring.ts';

/** Time enough to make another one and to put it in place. */
const EXPIRE_SOON_DAYS = 14;

const optionsOf = (controller: object) => controller.constructor as unknown as Partial<KeyControllerOptions>;

/** The page where customers manage their keys. */
export const apiKeysPortal: PortalDeclaration = {
  pages: [
    {
      resource: 'api_key',
      name: 'api-keys',
      label: 'API keys',
      singular: 'API key',
      group: 'API',
      icon: 'key',
      description: 'Credentials for your programs. Send one as X-API-Key. A key is shown once, when it is created.',
      removal: 'The key stops working immediately and permanently.',
      empty: { text: 'You have no API keys. Create one: your programs send it as X-API-Key.' },
      step: { place: 1, title: 'Create an API key', text: 'Your programs send it with each request.' },
      title: 'name',
      columns: [
        'name',
        { name: 'prefix', kind: 'code' },
        'state',
        { name: 'scopes', secondary: true },
        { name: 'last_used_at', label: 'Last used' },
        { name: 'expires_at', label: 'Expires', secondary: true },
        { name: 'previous_last_used_at', label: 'Old secret last used', secondary: true },
      ],
      filters: [
        { name: 'state', label: 'State' },
        { name: 'expires_before', label: 'Expires before' },
      ],
      states: {
        state: {
          active: { value: 'active', tone: 'good' },
          expired: { value: 'expired', tone: 'neutral', hint: 'A later expiry makes it work again.' },
          revoked: { value: 'revoked', tone: 'bad', hint: 'A revoked key never works again.' },
          owner_inactive: { value: 'owner inactive', tone: 'warning' },
        },
      },
      actions: {
        rotate: {
          label: 'Rotate',
          confirm: 'The key gets a new secret, which is shown once. With a grace, the old secret works for that many seconds beside it.',
          done: 'The key has a new secret.',
        },
      },
      secret: { label: 'API key', note: 'Copy it now and store it like a password: it is not shown again.' },
      omits: (controller) => (optionsOf(controller).allowRateLimit === true ? [] : ['rate_limit', 'quota']),
      suggestions: ({ db, controller, isStaff }) => ({
        scopes: optionsOf(controller).grantableScopes ?? defaultGrantable(keyringOf(db).routeScopes(), { is_staff: isStaff }),
      }),
      tiles: [
        { label: 'Active keys', parameters: { state: 'active' } },
        {
          label: `Expire within ${EXPIRE_SOON_DAYS} days`,
          parameters: { state: 'active' },
          ahead: { parameter: 'expires_before', days: EXPIRE_SOON_DAYS },
          isBad: true,
        },
      ],
    },
  ],
};
