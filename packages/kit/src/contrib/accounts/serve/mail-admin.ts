import type { AdminAction, AdminResource } from '../../../app/admin/declaration.ts';
import type { AdminRow } from '../../../app/admin/shapes.ts';
import { accountsOf } from '../users/accounts.ts';
import { accountErrors } from '../errors.ts';
import type { SentMail, StoredMail } from '../../../app/declare/mail-port.ts';
import { findUserByLogin } from '../users/store.ts';

/** The newest; a folder of a development system has no more that anyone looks for. */
const MAILS_SHOWN = 100;

/** The mails in the folder of a development system. With `smtpMail` there is nothing to show: the mails have left. */
export function mailsResource(sent: SentMail): AdminResource {
  return {
    name: 'mails',
    label: 'Mails',
    singular: 'mail',
    group: 'Development',
    icon: 'mail',
    description: `The newest ${MAILS_SHOWN} mails that folderMail() has stored instead of sending them.`,
    columns: [
      { name: 'subject', label: 'Subject', kind: 'text' },
      { name: 'to', label: 'To', kind: 'text' },
      { name: 'sent_at', label: 'Sent', kind: 'time' },
    ],
    filters: [],
    creation: { refused: 'Mails are sent by the application.' },
    editable: false,
    removable: false,
    needsPresence: ['show-link'],
    actions: [showLink(sent)],
    async list() {
      const items = (await sent.list(MAILS_SHOWN)).map(rowOf);
      return { items, count: items.length, next: null };
    },
    async read(_context, id) {
      const mail = await sent.read(id);
      if (mail === null) return null;
      const columns = [
        { name: 'to', label: 'To', kind: 'text' },
        { name: 'sent_at', label: 'Sent', kind: 'time' },
      ] as const;
      const row = rowOf(mail);
      return {
        ...row,
        sections: [
          { kind: 'facts', title: 'Mail', columns, values: row.values },
          { kind: 'text', title: 'Text', text: hidden(mail.text) },
        ],
        actions: linkOf(mail) === null ? [] : ['show-link'],
        removable: false,
      };
    },
  };
}

/** The token of a link sets a password, so it is a credential of the user who gets the mail. A link may stand inside of another one. */
const TOKEN = /((?:#|%23)(?:reset|invitation|email)(?:=|%3D))[\w-]+/gi;
const hidden = (text: string): string => text.replaceAll(TOKEN, '$1(hidden)');

const LINK = /https?:\/\/\S+#(?:reset|invitation|email)=[\w-]+/;

function linkOf({ text }: StoredMail): string | null {
  return LINK.exec(text)?.[0] ?? null;
}

/** For the person who sets the application up, and recorded: whoever has the link can take the account over. */
function showLink(sent: SentMail): AdminAction {
  return {
    name: 'show-link',
    label: 'Show the link',
    tone: 'neutral',
    needs: 'create',
    on: 'record',
    confirm: 'Whoever has the link can use it in place of the user. This is recorded in the audit log.',
    async run({ db, principal, requestId }, ids) {
      const mail = ids[0] === undefined ? null : await sent.read(ids[0]);
      const link = mail === null ? null : linkOf(mail);
      if (mail === null || link === null) throw accountErrors.invalid_link({ detail: 'The mail was deleted, or has no link.' });
      const user = await findUserByLogin(db, mail.to);
      // An address that is nobody's by now may have been a superuser's.
      if (!principal.user.is_superuser && user?.is_superuser !== false)
        throw accountErrors.superuser_only({
          detail: 'The mail went to a superuser, or to an address that no user has; only a superuser may see the link.',
        });
      const target = { target_type: user === null ? 'mail' : 'user', target_id: user?.id ?? mail.id };
      await accountsOf(db)
        .audit()
        ?.record(db, [{ actor: principal, action: 'user.mail_link_shown', ...target, request_id: requestId }]);
      const secret = { label: 'Link', value: link, note: `From the mail to ${mail.to}. It works once.` };
      return { message: 'The link is shown.', secret };
    },
  };
}

function rowOf({ id, to, subject, sentAt }: StoredMail): AdminRow {
  const title = hidden(subject);
  return { id, title, values: { subject: title, to, sent_at: sentAt.toISOString() } };
}
