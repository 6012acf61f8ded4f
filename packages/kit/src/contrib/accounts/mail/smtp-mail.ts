import { createTransport } from 'nodemailer';
import { permanent } from '../../jobs/declare/failure.ts';
import { readOptions } from '../../../options/read-options.ts';
import { filledText, required, sentenceRule } from '../../../options/value-rule.ts';
import type { MailPort } from '../../../app/declare/mail-port.ts';

export interface SmtpMailOptions {
  /** `smtps://user:password@mail.example.com:465`, or `smtp://…:587`, where STARTTLS is required unless the server is on this machine. */
  readonly url: string;
  /** The sender: `Shop <no-reply@example.com>`. */
  readonly from: string;
}

const TIMEOUT_MS = 30_000;

/** Sends mail through an SMTP server. Needs the package `nodemailer`. */
export function smtpMail(options: SmtpMailOptions): MailPort {
  const { url, from } = readOptions('smtpMail()', options, {
    url: required(sentenceRule<unknown>(urlFault)),
    from: required(filledText),
  });
  const { protocol, hostname } = new URL(url);
  const requireTLS = protocol === 'smtp:' && !isLoopback(hostname);
  const transport = createTransport({
    url,
    requireTLS,
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return {
    async send({ to, subject, text }) {
      try {
        await transport.sendMail({ from, to: { name: '', address: to }, subject, text });
      } catch (error) {
        // 5xx to the recipient: the address does not exist, and asking again does not change that.
        throw isRefusedRecipient(error) ? permanent(error) : error;
      }
    },
  };
}

function urlFault(value: unknown): string | null {
  const url = typeof value === 'string' ? URL.parse(value) : null;
  // The value may have a password in it: it is not repeated.
  return url !== null && /^smtps?:$/.test(url.protocol) && url.hostname !== ''
    ? null
    : 'Expected a URL such as "smtps://user:password@mail.example.com".';
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
}

function isRefusedRecipient(error: unknown): boolean {
  const { code, responseCode } = error as { readonly code?: unknown; readonly responseCode?: unknown };
  return code === 'EENVELOPE' && typeof responseCode === 'number' && responseCode >= 500;
}
