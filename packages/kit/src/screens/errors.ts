import { defineErrors } from '../errors/catalog.ts';

export const adminErrors = defineErrors('admin', {
  staff_only: {
    status: 403,
    detail: 'The password is right, but this account is not a staff member.',
    remedy: 'Log in with a staff account, or ask a staff member for staff access.',
    members: { csrf_token: { type: 'string', description: 'The token of the new session.' } },
  },
  role_required: {
    status: 403,
    detail: 'Your role does not allow this.',
    remedy: 'Ask an administrator; `detail` names the role it needs.',
  },
  resource_not_found: {
    status: 404,
    detail: 'The admin site has no such list.',
    remedy: 'Use one of the names in `resources`.',
    members: { resources: { type: 'array', items: { type: 'string' }, description: 'The names of the lists.' } },
  },
  action_not_found: {
    status: 404,
    detail: 'There is no such action.',
    remedy: 'Use one of the names in `actions`.',
    members: { actions: { type: 'array', items: { type: 'string' }, description: 'The names of the actions.' } },
  },
  one_record_only: { status: 422, detail: 'This action takes one record at a time.', remedy: 'Send one id.' },
  record_not_found: { status: 404, detail: 'There is no such record.', remedy: 'It may have been removed: load the list again.' },
  not_creatable: { status: 409, detail: 'Records cannot be created here.', remedy: '`detail` says why, and where they are.' },
  not_editable: {
    status: 409,
    detail: 'This record cannot be changed.',
    remedy: 'Load the record again; its page shows what can be done.',
  },
  not_restorable: {
    status: 409,
    detail: 'This record is not deleted.',
    remedy: 'Load the list again; deleted records are behind the filter "Deleted".',
  },
  not_exportable: {
    status: 409,
    detail: 'This list cannot be downloaded in this format.',
    remedy: 'Use a list and a format that the site offers: only tables shown by modelResource() can be downloaded.',
  },
  not_importable: {
    status: 409,
    detail: 'Records of this list cannot be made from a file.',
    remedy: 'Import is available only for CRUD resources that allow creating records.',
  },
  view_refused: {
    status: 409,
    detail: 'You cannot look at the application as this user.',
    remedy: '`detail` says why. Name an active user who is no member of staff, and a tenant that the user is a member of.',
  },
  too_many_saved: {
    status: 409,
    detail: 'You have saved too many filters for this list.',
    remedy: 'Delete one that you no longer use; `saved_max` is the limit.',
    members: { saved_max: { type: 'integer', description: 'The limit of saved filters.' } },
  },
  not_removable: {
    status: 409,
    detail: 'This record cannot be removed.',
    remedy: 'Load the record again; its page shows what can be done.',
  },
});
