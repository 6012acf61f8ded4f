import type { ExternalIdentity } from '../../../auth/people/identity-directory.ts';
import type { User } from '../../../auth/people/principal.ts';
import type { Db } from '../../../db/engine/db.ts';

export type IdentityWithUser = User & { readonly groups_digest: string | null; readonly groups_at: Date | null };

export async function findIdentity(db: Db, { issuer, subject }: ExternalIdentity): Promise<IdentityWithUser | null> {
  const [row] = await db.query<IdentityWithUser>(
    `select u.id, u.username, u.email, u.is_active, u.is_staff, u.is_superuser, i.groups_digest, i.groups_at
     from user_identities i join users u on u.id = i.user_id where i.issuer = $1 and i.subject = $2`,
    [issuer, subject],
  );
  return row ?? null;
}

export async function lockIdentity(tx: Db, { issuer, subject }: ExternalIdentity): Promise<{ readonly groups_at: Date | null } | null> {
  const lock = tx.dialect === 'postgres' ? ' for update' : '';
  const [row] = await tx.query<{ groups_at: Date | null }>(
    `select groups_at from user_identities where issuer = $1 and subject = $2${lock}`,
    [issuer, subject],
  );
  return row ?? null;
}

export async function insertIdentity(tx: Db, { issuer, subject }: ExternalIdentity, userId: string, now: Date): Promise<void> {
  await tx.query('insert into user_identities (issuer, subject, user_id, created_at) values ($1, $2, $3, $4)', [
    issuer,
    subject,
    userId,
    now,
  ]);
}

export async function appliedGroups(tx: Db, { issuer, subject }: ExternalIdentity, digest: string, at: Date): Promise<void> {
  await tx.query('update user_identities set groups_digest = $3, groups_at = $4 where issuer = $1 and subject = $2', [
    issuer,
    subject,
    digest,
    at,
  ]);
}

/** The groups in the next token of everybody are applied: a group has become managed by the issuer. */
export async function forgetAppliedGroups(tx: Db, issuer: string): Promise<void> {
  await tx.query('update user_identities set groups_digest = null where issuer = $1 and groups_digest is not null', [issuer]);
}

export async function identitiesOf(db: Db, userId: string, limit: number): Promise<(ExternalIdentity & { readonly created_at: Date })[]> {
  return db.query('select issuer, subject, created_at from user_identities where user_id = $1 order by created_at limit $2', [
    userId,
    limit,
  ]);
}
