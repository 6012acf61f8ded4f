import { jsonSchema } from '../../http/json-schema.ts';
import { CONFLICT_RETRIES } from '../../db/conflict-retries.ts';
import type { Db } from '../../db/db.ts';
import { job, type JobContext } from '../jobs/job.ts';
import { permanent } from '../jobs/failure.ts';
import { startJob } from '../jobs/start-job.ts';
import { accountsOf } from './accounts.ts';
import { accountErrors } from './errors.ts';
import { createLink } from './links.ts';
import { deleteLink, type LinkPurpose } from './link-store.ts';
import { normalizeLogin } from './login-name.ts';
import { defaultMail, linkTo, type MailOptions } from './mail.ts';
import { publicUser } from './manage-users.ts';
import { findUserById, findUserByLogin, type UserRow } from './store.ts';

interface LinkInput {
  readonly purpose: LinkPurpose;
  /** The user's id; of a reset the login as it was typed, known or not. */
  readonly to: string;
}

const TIMEOUT_MS = 60_000;

/**
 * Sends an invitation or a link to reset a password. The link is created here and not by the request: its token is then in no table, not even
 * in the input of this job, and a request for an unknown user does the same work as one for a known user. Ten attempts over about eight
 * hours; a job that failed can be started again from the admin site.
 */
export const sendLink = job('accounts.send_link', {
  input: jsonSchema<LinkInput>({
    type: 'object',
    properties: { purpose: { enum: ['invitation', 'reset'] }, to: { type: 'string', maxLength: 254, 'x-sensitive': true } },
    required: ['purpose', 'to'],
    additionalProperties: false,
  }),
  retry: { attempts: 10, firstDelaySeconds: 10, delaySecondsMax: 7200 },
  timeoutMs: TIMEOUT_MS,
  async run(context: JobContext<LinkInput>) {
    const { db, input, signal } = context;
    const { settings, mails } = accountsOf(db);
    const { mail } = settings;
    if (mail === null) throw permanent(accountErrors.mail_not_set_up());
    const user = await recipient(db, input);
    if (user === null) mails?.add({ outcome: 'no_recipient' });
    else await send(db, mail, user, input.purpose, signal);
  },
});

/** In the caller's transaction: no mail for what was rolled back, and none is lost. */
export async function startInvitation(tx: Db, user: Pick<UserRow, 'id'>): Promise<void> {
  await start(tx, { purpose: 'invitation', to: user.id });
}

/** For any login, known or not, with the same statements. */
export async function startReset(db: Db, login: string): Promise<void> {
  await db.transaction(
    (tx) => start(tx, { purpose: 'reset', to: normalizeLogin(login).slice(0, 254).toWellFormed().replaceAll('\0', '') }),
    CONFLICT_RETRIES,
  );
}

async function start(tx: Db, input: LinkInput): Promise<void> {
  if (accountsOf(tx).settings.mail === null) throw accountErrors.mail_not_set_up();
  await startJob(tx, sendLink, input);
}

/**
 * Null where no mail is due. A user without a password logs in elsewhere: a reset must not give the account a second door. An invitation that
 * was accepted meanwhile is not sent again.
 */
async function recipient(db: Db, { purpose, to }: LinkInput): Promise<(UserRow & { email: string }) | null> {
  const user = purpose === 'invitation' ? await findUserById(db, to) : to === '' ? null : await findUserByLogin(db, to);
  if (user === null || !user.is_active || user.email === null) return null;
  return (purpose === 'reset') === (user.password_hash !== null) ? (user as UserRow & { email: string }) : null;
}

async function send(
  db: Db,
  mail: MailOptions,
  user: UserRow & { email: string },
  purpose: LinkPurpose,
  signal: AbortSignal,
): Promise<void> {
  const { title, mails } = accountsOf(db);
  const link = await createLink(db, user, purpose);
  const facts = { purpose, user: publicUser(user), link: linkTo(mail, purpose, link.token), expiresAt: link.expiresAt, title };
  try {
    const { subject, text } = mail.compose?.(facts) ?? defaultMail(facts);
    await mail.send({ to: user.email, subject, text }, { signal });
    mails?.add({ outcome: 'sent' });
  } catch (error) {
    mails?.add({ outcome: 'failed' });
    // Nobody has it. When the process ends before this, the link expires unused.
    await deleteLink(db, link.id);
    throw error;
  }
}
