import { linkUrlFault, type MailMessage, type MailPort } from '../../../app/declare/mail-port.ts';
import type { User } from '../../../auth/people/principal.ts';
import { isProduction } from '../../../middleware/config.ts';
import type { Fault } from '../../../options/fault.ts';
import { implementationOf } from '../../../options/read-options.ts';
import { aFunction, objectWith, required, sentenceRule } from '../../../options/value-rule.ts';
import type { LinkPurpose } from '../users/link-store.ts';

export interface MailOptions extends MailPort {
  /**
   * The page that takes the links: `https://shop.example.com/account`. The token is appended as `#reset=…` or `#invitation=…`: browsers do not
   * send a fragment, so that it is in no server's log. The admin site takes them, too: `https://shop.example.com/admin/`.
   */
  readonly linkUrl: string;
  /** The text of a mail. Default: a few sentences in English with the application's title. */
  compose?(mail: AccountMail): Pick<MailMessage, 'subject' | 'text'>;
}

export interface AccountMail {
  /** `email` goes to the new address with the link; `email_notice` to the old one. */
  readonly purpose: LinkPurpose | 'email_notice';
  readonly user: User;
  /** Of `email_notice`: `linkUrl`. */
  readonly link: string;
  /** When the link ends. Of `email_notice`: now. */
  readonly expiresAt: Date;
  /** The application's title. */
  readonly title: string;
}

export const mailRule = implementationOf<MailOptions>('mail: { ...smtpMail(…), linkUrl }', {
  send: required(aFunction),
  sent: objectWith('{ list, read }', 'list', 'read'),
  linkUrl: required(sentenceRule<unknown>(linkUrlFault)),
  compose: aFunction,
});

/** A port that only stores mails sends none, and staff who read them get links that are meant for others. */
export function storedMailFaults(mail: MailOptions | null): Fault[] {
  if (mail?.sent === undefined || !isProduction()) return [];
  return [
    {
      id: 'E011',
      message: 'accounts({ mail }) stores mails in a folder instead of sending them, and NODE_ENV is production.',
      hint: 'Use smtpMail(…), or your own `send` without `sent`; keep folderMail(…) for development.',
    },
  ];
}

export function linkTo({ linkUrl }: Pick<MailOptions, 'linkUrl'>, purpose: LinkPurpose, token: string): string {
  return `${linkUrl}#${purpose}=${token}`;
}

export function defaultMail({ purpose, user, link, expiresAt, title }: AccountMail): Pick<MailMessage, 'subject' | 'text'> {
  const until = `The link can be used once, until ${expiresAt.toISOString().slice(0, 16).replace('T', ' ')} UTC.`;
  if (purpose === 'invitation')
    return {
      subject: `Your account at ${title}`,
      text: `An account was created for you at ${title}. Your user name is ${user.username}.\n\nChoose a password here:\n${link}\n\n${until}\n`,
    };
  if (purpose === 'email')
    return {
      subject: `Confirm your e-mail address for ${title}`,
      text: `${user.username} at ${title} asked to use this address.\n\nConfirm it here:\n${link}\n\n${until} If it was not you, ignore this mail.\n`,
    };
  if (purpose === 'email_notice')
    return {
      subject: `Your e-mail address at ${title}`,
      text: `Somebody who is logged in as ${user.username} at ${title} asked to use another e-mail address instead of this one.\n\nIf it was not you, change your password now:\n${link}\n`,
    };
  return {
    subject: `Set a new password for ${title}`,
    text: `Somebody asked to set a new password for ${user.username} at ${title}.\n\nSet it here:\n${link}\n\n${until} If it was not you, ignore this mail: nothing has changed.\n`,
  };
}
