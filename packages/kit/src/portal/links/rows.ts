import { findBy, list } from '../../db/rows/repository.ts';
import type { Row } from '../../db/declare/rows.ts';
import type { Db } from '../../db/engine/db.ts';
import { skipLocked } from '../../work/lock-patience.ts';
import { portalLinks } from '../models.ts';

export type PortalLinkRow = Row<typeof portalLinks>;

/** A link that nobody has opened. */
export function findUnused(db: Db, digest: string, now: Date): Promise<PortalLinkRow | undefined> {
  return findBy(db, portalLinks, { token_digest: digest, used_at: null, expires_at: { gt: now } });
}

/** True for one caller per link: of twenty at the same moment, one opens it. */
export async function openOnce(tx: Db, id: string, { now, session, until }: { now: Date; session: string; until: Date }): Promise<boolean> {
  const opened = await tx.execute(
    'update portal_links set used_at = $1, session_digest = $2, expires_at = $3 where id = $4 and used_at is null and expires_at > $1',
    [now, session, until, id],
  );
  return opened.count === 1;
}

/** Open sessions, by their digests or by their ids. */
export function findSessions(db: Db, by: 'id' | 'session_digest', values: readonly string[], now: Date): Promise<PortalLinkRow[]> {
  return list(db, portalLinks, { where: { [by]: { in: values }, used_at: { ne: null }, expires_at: { gt: now } } });
}

export async function removeSession(db: Db, digest: string): Promise<void> {
  await db.execute('delete from portal_links where session_digest = $1', [digest]);
}

/** Rows that one statement removes. */
const BATCH = 1000;

/** Removes one batch of links and sessions that have ended. Returns how many. */
export async function removeExpired(db: Db, now: Date): Promise<number> {
  const { count } = await db.execute(
    `delete from portal_links where id in (select id from portal_links where expires_at <= $1 order by expires_at limit ${BATCH}${skipLocked(db)})`,
    [now],
  );
  return count;
}

/** Links and sessions of a user; with a tenant those for it alone. */
export async function removeOf(tx: Db, userId: string, tenant?: string): Promise<void> {
  await tx.execute(
    `delete from portal_links where user_id = $1${tenant === undefined ? '' : ' and tenant_id = $2'}`,
    tenant === undefined ? [userId] : [userId, tenant],
  );
}
