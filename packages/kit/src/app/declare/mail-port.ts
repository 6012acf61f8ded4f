export interface MailMessage {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
}

/** How mail leaves the application: what `smtpMail(…)` and, in development, `folderMail(…)` return, or your own. */
export interface MailPort {
  /** Resolves when the mail was accepted. What it throws is tried again later; `permanent(error)` of `kit/contrib/jobs` is not. */
  send(message: MailMessage, options: { readonly signal: AbortSignal }): Promise<unknown>;
  /** What was sent, for the admin site of a development system. */
  readonly sent?: SentMail;
}

export interface SentMail {
  /** The newest first. */
  list(limit: number): Promise<readonly StoredMail[]>;
  /** One message, or null. */
  read(id: string): Promise<StoredMail | null>;
}

export interface StoredMail extends MailMessage {
  readonly id: string;
  readonly sentAt: Date;
}

/** What is wrong with the URL of a page that takes links from mails; null when nothing is. */
export function linkUrlFault(value: unknown): string | null {
  const url = typeof value === 'string' ? URL.parse(value) : null;
  if (url !== null && /^https?:$/.test(url.protocol) && url.hash === '' && url.username === '' && url.password === '') return null;
  return `Expected the URL of a page such as "https://shop.example.com/account", without a fragment, not ${JSON.stringify(value)}.`;
}
