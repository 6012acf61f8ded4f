import type { Db } from '../../../db/engine/db.ts';
import type { LINK_PURPOSES } from '../models.ts';
import { skipLocked } from '../../../work/lock-patience.ts';

export type LinkPurpose = (typeof LINK_PURPOSES)[number];

export interface LinkRow {
  readonly id: string;
  readonly user_id: string;
  readonly purpose: LinkPurpose;
  readonly email: string | null;
  readonly token_digest: string;
  readonly created_at: Date;
  readonly expires_at: Date;
  readonly invited_by: string | null;
}

export async function insertLink(db: Db, link: LinkRow): Promise<void> {
  await db.query(
    `insert into account_links (id, user_id, purpose, email, token_digest, created_at, expires_at, invited_by)
     values ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [link.id, link.user_id, link.purpose, link.email, link.token_digest, link.created_at, link.expires_at, link.invited_by],
  );
}

export async function findLinkUser(db: Db, purpose: LinkPurpose, digest: string, now: Date): Promise<string | null> {
  const [row] = await db.query<{ user_id: string }>(
    'select user_id from account_links where token_digest = $1 and purpose = $2 and expires_at > $3',
    [digest, purpose, now],
  );
  return row?.user_id ?? null;
}

/** The user, for one caller per link: the row is deleted by the statement that finds it. */
export async function takeLink(
  tx: Db,
  purpose: LinkPurpose,
  digest: string,
  now: Date,
): Promise<Pick<LinkRow, 'user_id' | 'email'> | null> {
  const [row] = await tx.query<Pick<LinkRow, 'user_id' | 'email'>>(
    'delete from account_links where token_digest = $1 and purpose = $2 and expires_at > $3 returning user_id, email',
    [digest, purpose, now],
  );
  return row ?? null;
}

export async function deleteLink(db: Db, id: string): Promise<void> {
  await db.query('delete from account_links where id = $1', [id]);
}

export async function deleteLinksOf(tx: Db, userId: string): Promise<void> {
  await tx.query('delete from account_links where user_id = $1', [userId]);
}

export async function deleteInvitationsBy(tx: Db, userId: string): Promise<void> {
  await tx.query('delete from account_links where invited_by = $1', [userId]);
}

export async function deleteExpiredLinks(db: Db, now: Date): Promise<void> {
  await db.query(`delete from account_links where id in (select id from account_links where expires_at <= $1${skipLocked(db)})`, [now]);
}
