import { defineErrors } from '../../errors/catalog.ts';

export const grantErrors = defineErrors('grants', {
  cannot_grant: {
    status: 403,
    detail: 'Callers can grant and revoke only what they hold.',
    remedy: 'Ask a user who holds the actions in `actions`, for as long as the grant is to last.',
  },
  last_holder: {
    status: 409,
    detail: 'No user could share the object any more.',
    remedy: 'Grant `share` to another user first.',
  },
  too_many_grants: {
    status: 409,
    detail: 'The object is shared with as many subjects as allowed.',
    remedy: 'Make a group of them and grant once; `limit` is how many there may be.',
  },
  grant_cycle: {
    status: 409,
    detail: 'An object cannot be inside itself.',
    remedy: 'Choose a parent that is not below the object.',
  },
  unknown_object: { status: 404, detail: 'There is no such object.', remedy: 'Check the type and the id.' },
});
