import { join } from 'node:path';
import { folderMail, type MailPort } from 'kit/contrib/accounts';
import { smtpMail } from 'kit/contrib/accounts/smtp';

const { SMTP_URL: url = '' } = process.env;

/** Sends invitations and links. Without SMTP_URL they become files, which the admin site shows: for development. */
export const mail: MailPort =
  url === ''
    ? folderMail({ folder: join(import.meta.dirname, '../data/mail') })
    : smtpMail({ url, from: '{{name}} <no-reply@example.com>' });
