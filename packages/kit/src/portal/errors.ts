import { READ_ONLY } from '../admin/state/site-kind.ts';
import { defineErrors } from '../errors/catalog.ts';

export const portalErrors = defineErrors('portal', {
  invalid_portal_link: {
    status: 410,
    detail: 'This link does not work any more.',
    remedy: 'Links work once and for a short time. Ask for a new one where you got it.',
  },
  portal_read_only: {
    status: 403,
    detail: READ_ONLY,
    remedy: 'Ask a person who manages your account, or open a link that may change things.',
  },
  portal_page_not_shown: {
    status: 403,
    detail: 'The link that opened this session does not show this page.',
    remedy: 'Ask for a link with this page.',
  },
  portal_tenant_changed: {
    status: 409,
    detail: 'You chose another organization in another tab. This page is still about the one before.',
    remedy: 'Load the page again: it is then about the one that you chose.',
  },
});
