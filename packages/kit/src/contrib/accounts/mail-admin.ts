import type { AdminResource } from '../../app/admin/declaration.ts';
import type { AdminRow } from '../../app/admin/shapes.ts';
import type { SentMail, StoredMail } from './mail.ts';

/** The newest; a folder of a development system has no more that anyone looks for. */
const MAILS_SHOWN = 100;

/** The mails in the folder of a development system. With `smtpMail` there is nothing to show: the mails have left. */
export function mailsResource(sent: SentMail): AdminResource {
  return {
    name: 'mails',
    label: 'Mails',
    singular: 'mail',
    group: 'Development',
    icon: 'event',
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
    actions: [],
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
          { kind: 'text', title: 'Text', text: mail.text },
        ],
        actions: [],
        removable: false,
      };
    },
  };
}

function rowOf({ id, to, subject, sentAt }: StoredMail): AdminRow {
  return { id, title: subject, values: { subject, to, sent_at: sentAt.toISOString() } };
}
