import { t } from '../db/declare/column.ts';
import { model } from '../db/declare/model.ts';
import { IDENTITY_LENGTH_MAX } from '../db/values/identity-length.ts';

/** Links to the portal, and the sessions that they open: a link opens one, and is its row. */
export const portalLinks = model(
  'portal_links',
  {
    id: t.uuidv7().pk(),
    /** Not a foreign key: the table of users may be anyone's. */
    user_id: t.text(IDENTITY_LENGTH_MAX).person(),
    tenant_id: t
      .text(IDENTITY_LENGTH_MAX)
      .nullable()
      .tenant()
      .describe('The tenant that it is for. Empty: none; null: the app has no tenants.'),
    pages: t.array(t.text()).describe('Names of the pages that it shows. Empty: all.'),
    manage: t.bool().describe('Its session may change things.'),
    created_at: t.timestamp(),
    /** SHA-256 of the token in the link, in hexadecimal. */
    token_digest: t.text(64).unique().sensitive(),
    used_at: t.timestamp().nullable().describe('When it was opened. It works once.'),
    /** SHA-256 of the token of the session, in hexadecimal. */
    session_digest: t.text(64).nullable().unique().sensitive(),
    expires_at: t.timestamp().describe('Of the link until it is opened, then of its session.'),
  },
  { guarded: true, indexes: [{ columns: ['user_id'] }, { columns: ['expires_at'] }] },
);
