import { createHash } from 'node:crypto';
import { jsonSchema } from '../../../http/declare/json-schema.ts';
import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { Db } from '../../../db/engine/db.ts';
import { isUuid } from '../../../db/values/uuid.ts';
import type { AuditEntry } from '../../../auth/request/audit-sink.ts';
import { job, type JobContext } from '../../jobs/declare/job.ts';
import { permanent } from '../../jobs/declare/failure.ts';
import { startJob } from '../../jobs/start/start-job.ts';
import { accountsOf } from '../users/accounts.ts';
import { accountErrors } from '../errors.ts';
import { createLink, type NewLink } from './links.ts';
import { deleteLink, type LinkPurpose } from '../users/link-store.ts';
import { normalizeLogin } from '../users/login-name.ts';
import { type AccountMail, defaultMail, linkTo, type MailOptions } from './mail.ts';
import { publicUser } from '../users/manage-users.ts';
import { findUserById, findUserByLogin, lockActiveUser, type UserRow } from '../users/store.ts';

interface LinkInput {
  readonly purpose: AccountMail['purpose'];
  /** The user's id; of a reset the login as it was typed, known or not. */
  readonly to: string;
  /** Of `email` the new address, of `email_notice` the old one. */
  readonly email?: string;
  /** Of `email`: the digest of the user who asked. */
  readonly asked_by?: string;
  /** Of an invitation: who sent it. */
  readonly by?: Sender;
}

/** A user who invites, and whether as staff: the invitation ends with that right. */
interface Sender {
  readonly id: string;
  readonly is_staff: boolean;
}

const TIMEOUT_MS = 60_000;
const PURPOSES: readonly LinkInput['purpose'][] = ['invitation', 'reset', 'email', 'email_notice'];
const address = { type: 'string', maxLength: 254, 'x-sensitive': true };

/**
 * Sends an invitation, a link to reset a password or one to confirm an address. The link is created here and not by the request: its token is
 * then in no table, not even in the input of this job, and a request for an unknown user does the same work as one for a known user. Ten
 * attempts over about eight hours; a job that failed can be started again from the admin site.
 */
export const sendLink = job('accounts.send_link', {
  input: jsonSchema<LinkInput>({
    type: 'object',
    properties: {
      purpose: { enum: PURPOSES },
      to: address,
      email: address,
      asked_by: { type: 'string', maxLength: 64, 'x-sensitive': true },
      by: {
        type: 'object',
        properties: { id: { type: 'string', maxLength: 36 }, is_staff: { type: 'boolean' } },
        required: ['id', 'is_staff'],
        additionalProperties: false,
      },
    },
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
    const due = await db.transaction((tx) => dueMail(tx, input), CONFLICT_RETRIES);
    if (due === null) mails?.add({ outcome: 'no_recipient' });
    else await send(db, mail, due, input, signal);
  },
});

/** In the caller's transaction: no mail for what was rolled back, and none is lost. The invitation ends with the rights of the user who sends it. */
export async function startInvitation(tx: Db, user: Pick<UserRow, 'id'>, actor: AuditEntry['actor']): Promise<void> {
  const by = await senderOf(tx, actor);
  await start(tx, { purpose: 'invitation', to: user.id, ...(by === null ? {} : { by }) });
}

/** Null for a command, and for a caller whose user is not stored here. */
async function senderOf(tx: Db, actor: AuditEntry['actor']): Promise<Sender | null> {
  if (typeof actor !== 'object' || actor === null) return null;
  const { id, is_staff } = 'user' in actor ? actor.user : actor;
  return isUuid(id) && (await findUserById(tx, id)) !== null ? { id, is_staff } : null;
}

/** For any login, known or not, with the same statements. */
export async function startReset(db: Db, login: string): Promise<void> {
  await db.transaction(
    (tx) => start(tx, { purpose: 'reset', to: normalizeLogin(login).slice(0, 254).toWellFormed().replaceAll('\0', '') }),
    CONFLICT_RETRIES,
  );
}

/** For any address, free or not, with the same statements. The old address gets a notice before anything changes. The user is locked. */
export async function startEmailChange(tx: Db, user: UserRow, email: string): Promise<void> {
  await start(tx, { purpose: 'email', to: user.id, email, asked_by: digestOf(user) });
  if (user.email !== null) await start(tx, { purpose: 'email_notice', to: user.id, email: user.email });
}

/** Changes with the password, the address and the rights of the user, and tells none of them: the hash has a random salt. */
function digestOf({ password_hash, email, updated_at }: UserRow): string {
  return createHash('sha256')
    .update(JSON.stringify([password_hash, email, updated_at]))
    .digest('hex');
}

async function start(tx: Db, input: LinkInput): Promise<void> {
  if (accountsOf(tx).settings.mail === null) throw accountErrors.mail_not_set_up();
  await startJob(tx, sendLink, input);
}

interface DueMail {
  readonly user: UserRow;
  readonly address: string;
  /** Null for a notice. */
  readonly link: NewLink | null;
}

/**
 * Null where no mail is due. Sender and user are locked until the link is stored: a change of the password, of the address or of their rights either ran
 * before, or waits and then ends the link.
 */
async function dueMail(tx: Db, input: LinkInput): Promise<DueMail | null> {
  const { purpose, email = null, by } = input;
  const sender = by === undefined ? null : await lockActiveUser(tx, by.id);
  if (by !== undefined && (sender === null || (by.is_staff && !sender.is_staff))) return null;
  const found = await recipient(tx, input);
  if (found === null) return null;
  const link = purpose === 'email_notice' ? null : await createLink(tx, found.user, purpose, { email, invitedBy: by?.id ?? null });
  return { ...found, link };
}

/**
 * A user without a password logs in elsewhere: a reset must not give the account a second door. An invitation that was accepted meanwhile is not sent
 * again. An address that another user has gets no link. Nor does one that was asked for before the password, the address or the rights changed: a thief
 * whose mail server delays the mail would get a link that the change did not end.
 */
async function recipient(tx: Db, { purpose, to, email = '', asked_by }: LinkInput): Promise<Omit<DueMail, 'link'> | null> {
  const id = purpose === 'reset' ? (to === '' ? null : ((await findUserByLogin(tx, to))?.id ?? null)) : to;
  const user = id === null ? null : await lockActiveUser(tx, id);
  if (user === null) return null;
  if (purpose === 'email_notice') return { user, address: email };
  if (purpose === 'email')
    return asked_by === digestOf(user) && (await findUserByLogin(tx, email)) === null ? { user, address: email } : null;
  if (user.email === null) return null;
  return (purpose === 'reset') === (user.password_hash !== null) ? { user, address: user.email } : null;
}

async function send(
  db: Db,
  mail: MailOptions,
  { user, address: to, link }: DueMail,
  { purpose }: LinkInput,
  signal: AbortSignal,
): Promise<void> {
  const { title, mails, clock } = accountsOf(db);
  const target =
    link === null
      ? { link: mail.linkUrl, expiresAt: clock.now() }
      : { link: linkTo(mail, purpose as LinkPurpose, link.token), expiresAt: link.expiresAt };
  const facts: AccountMail = { purpose, user: publicUser(user), title, ...target };
  try {
    const { subject, text } = mail.compose?.(facts) ?? defaultMail(facts);
    await mail.send({ to, subject, text }, { signal });
    mails?.add({ outcome: 'sent' });
  } catch (error) {
    mails?.add({ outcome: 'failed' });
    // Nobody has it. When the process ends before this, the link expires unused.
    if (link !== null) await deleteLink(db, link.id);
    throw error;
  }
}
