import { defineErrors } from '../../errors/catalog.ts';

/** Errors of object grants. */
export const grantErrors = defineErrors('grants', {
  cannot_grant: {
    status: 403,
    detail: 'You can only grant or revoke actions that you have.',
    remedy: 'Ask a user who has the actions in `actions` for at least as long as the grant.',
    members: { actions: { type: 'array', items: { type: 'string' }, description: 'The actions that you do not have.' } },
  },
  last_holder: {
    status: 409,
    detail: 'This change would leave no user who can share the object.',
    remedy: 'Grant `share` to another user first.',
  },
  too_many_grants: {
    status: 409,
    detail: 'The object has the maximum number of grants.',
    remedy: 'Grant to a group instead. `limit` is the maximum.',
    members: { limit: { type: 'integer', description: 'The limit of grants per object.' } },
  },
  grant_cycle: {
    status: 409,
    detail: 'An object cannot be its own ancestor.',
    remedy: 'Choose a parent that is not below the object.',
  },
  object_not_found: { status: 404, detail: 'There is no such object.', remedy: 'Check the type and the id.' },
});
