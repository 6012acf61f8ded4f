import { coreErrors } from '../../errors/core-errors.ts';
import { defineErrors } from '../../errors/catalog.ts';
import type { KitError } from '../../errors/kit-error.ts';

/** Errors of user accounts, sessions and groups. */
export const accountErrors = defineErrors('accounts', {
  username_taken: { status: 409, detail: 'A user of this name exists already.', remedy: 'Choose another user name.' },
  email_taken: {
    status: 409,
    detail: 'A user with this e-mail address exists already.',
    remedy: 'Use another address, or the existing user.',
  },
  user_not_found: { status: 404, detail: 'There is no such user.', remedy: 'Name the user by user name, e-mail address or id.' },
  group_not_found: { status: 404, detail: 'There is no such group.', remedy: 'Name the group by its name or id.' },
  group_name_taken: { status: 409, detail: 'A group of this name exists already.', remedy: 'Choose another name.' },
  invalid_group: { status: 422, detail: 'The group is not valid.', remedy: '`detail` describes what to correct.' },
  invalid_user: { status: 422, detail: 'The user is not valid.', remedy: '`detail` describes what to correct.' },
  own_account: {
    status: 409,
    detail: 'You cannot deactivate or demote your own account.',
    remedy: 'Ask another staff member, or use `kit user` on the server.',
  },
  superuser_only: {
    status: 403,
    detail: 'Only a superuser may change a superuser.',
    remedy: 'Ask a superuser, or use `kit user` on the server.',
  },
  service_user: {
    status: 409,
    detail: 'This is a service user of a tenant: it uses API keys, nobody logs in as it, and it is never staff.',
    remedy: 'Use an account of a person.',
  },
  user_in_use: {
    status: 409,
    detail: 'Rows refer to this user.',
    remedy: 'Delete the rows that `references` names or give them to another user, or deactivate the user instead.',
    members: { references: { type: 'array', items: { type: 'string' }, description: 'Where records refer to the user.' } },
  },
  one_time_code_required: {
    status: 401,
    detail: 'A one-time code is required.',
    remedy: 'Send the login again with `code`: six digits of the authenticator app, or a recovery code.',
  },
  invalid_one_time_code: {
    status: 401,
    detail: 'The one-time code is wrong, or was used before.',
    remedy: 'Wait for the next code of the authenticator app, or use a recovery code.',
  },
  second_factor_unavailable: {
    status: 503,
    detail: 'One-time codes cannot be checked at the moment.',
    remedy: 'Use a recovery code. For operators: add the key that encrypted the secret to ACCOUNT_SECRET_KEYS.',
  },
  no_pending_factor: { status: 409, detail: 'No second factor is being set up.', remedy: 'Begin with `POST factor`.' },
  no_second_factor: { status: 409, detail: 'The user has no second factor.', remedy: 'Set one up with `POST factor`.' },
  session_not_found: { status: 404, detail: 'There is no such session.', remedy: 'Read the list of sessions again; it may have ended.' },
  invalid_link: {
    status: 410,
    detail: 'The link is not valid: it was used, has expired, or was replaced.',
    remedy: 'Ask for a new link.',
  },
  sign_up_closed: {
    status: 403,
    detail: 'Invitations are not enabled.',
    remedy: "Enable them with accounts({ signUp: 'invitation' }), or use `kit user invite` on the server.",
  },
  mail_not_set_up: {
    status: 409,
    detail: 'This application sends no mail.',
    remedy: 'Set accounts({ mail }), or let an operator create the link with `kit user reset --print`.',
  },
  weak_password: { status: 422, detail: 'The password is too weak.', remedy: '`detail` describes what to correct.' },
});

/** The one answer to every login that fails: unknown, deactivated, without a password, or mistyped. */
export function loginFailed(): KitError {
  return coreErrors.invalid_credentials({ detail: 'The user name or the password is wrong.' });
}
