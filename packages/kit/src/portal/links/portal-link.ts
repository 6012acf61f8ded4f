import type { AuditEntry } from '../../auth/request/audit-sink.ts';
import { tenantOfMember } from '../../app/tenants/tenant-of-member.ts';
import type { User } from '../../auth/people/principal.ts';
import { newSessionToken, sessionDigest } from '../../contrib/accounts/sessions/session-token.ts';
import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import type { Db } from '../../db/engine/db.ts';
import { insert, find } from '../../db/rows/repository.ts';
import { isUuid } from '../../db/values/uuid.ts';
import { uuidv7 } from '../../db/values/uuidv7.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import { InvalidOptions, type OptionRules, readOptions, requireArguments } from '../../options/read-options.ts';
import {
  anything,
  either,
  filledText,
  flag,
  listOf,
  nullable,
  objectWith,
  queryable,
  required,
  wholeNumber,
} from '../../options/value-rule.ts';
import { portalLinks } from '../models.ts';
import { portalState, type PortalState } from './state.ts';

/** Who makes a link or ends it, and in which request: for the audit entry. */
export interface LinkContext {
  /** Who does it. */
  readonly by?: AuditEntry['actor'];
  /** The request in which it is done. */
  readonly requestId?: string | null | undefined;
}

export interface NewPortalLink extends LinkContext {
  /** Whom it is for, or the id. */
  readonly user: Pick<User, 'id'> | string;
  /** The id or slug of the tenant that it is for, and no other: the user has to be a member. Default: none. */
  readonly tenant?: string | null | undefined;
  /** Names of the pages that it shows, as in their addresses: `['endpoints', 'deliveries']`. Default: all. */
  readonly pages?: readonly string[] | undefined;
  /** Its session may change what the user may change; keys are made in the first ten minutes after the link. Default: false. */
  readonly manage?: boolean | undefined;
  /** How long it can be opened, in seconds: 60 to 86400. Default: 600. */
  readonly expiresIn?: number | undefined;
}

export interface PortalLink {
  /** For `revokePortalLink`. */
  readonly id: string;
  /** For `<kit-portal>`. Shown now and never again: only a digest of it is stored. */
  readonly token: string;
  /** For a mail or a redirect, after the origin of the API: `/portal/#link=…`. No server and no proxy sees what is after `#`. */
  readonly path: string;
  /** Until when it can be opened. */
  readonly expiresAt: Date;
}

const LIFETIME_SECONDS = 600;

const rules: OptionRules<NewPortalLink> = {
  user: required(either('a user or its id', filledText, objectWith('a user: { id }'))),
  tenant: nullable(filledText),
  pages: listOf(filledText, { min: 1 }),
  manage: flag,
  expiresIn: wholeNumber(60, 86_400),
  by: anything,
  requestId: anything,
};

/**
 * A link to the portal for one user, whom your own login has identified. It works once, for a short time, and opens a session of the portal alone.
 *
 * @example
 * ```ts
 * const { path } = await portalLink(db, { user, tenant: 'acme', manage: true });
 * const url = new URL(path, 'https://api.example.com').href; // redirect the browser of the user there
 * ```
 */
export async function portalLink(db: Db, link: NewPortalLink): Promise<PortalLink> {
  requireArguments('portalLink()', { db }, { db: queryable });
  const {
    user,
    tenant,
    pages = [],
    manage = false,
    expiresIn = LIFETIME_SECONDS,
    by,
    requestId,
  } = readOptions('portalLink()', link, rules);
  const state = portalState.of(db);
  requirePages(pages, state.pages);
  const now = state.clock.now();
  const [id, token, expiresAt] = [uuidv7(state.clock), newSessionToken(), new Date(now.getTime() + expiresIn * 1000)];
  await db.transaction(async (tx) => {
    const owner = await state.users.findById(tx, typeof user === 'string' ? user : user.id);
    if (owner === null || !owner.is_active) throw coreErrors.not_found({ detail: 'There is no active user with this id.' });
    const tenant_id = await tenantOfLink(tx, state, owner, tenant ?? null);
    await insert(tx, portalLinks, {
      id,
      user_id: owner.id,
      tenant_id,
      pages: [...pages],
      manage,
      created_at: now,
      token_digest: sessionDigest(token),
      expires_at: expiresAt,
    });
    await recordLink(tx, 'created', { id, user_id: owner.id, tenant_id }, { by, requestId }, { pages, manage, expires_at: expiresAt });
  }, CONFLICT_RETRIES);
  return { id, token, path: `${state.prefix}/#link=${token}`, expiresAt };
}

/** Ends a link, and the session that it opened. False where there is none any more. */
export async function revokePortalLink(db: Db, id: string, context: LinkContext = {}): Promise<boolean> {
  requireArguments('revokePortalLink()', { db, id }, { db: queryable, id: filledText });
  const { by, requestId } = readOptions('revokePortalLink()', context, { by: anything, requestId: anything });
  if (!isUuid(id)) return false;
  return db.transaction(async (tx) => {
    const link = await find(tx, portalLinks, id);
    if (link === undefined) return false;
    await tx.execute('delete from portal_links where id = $1', [id]);
    await recordLink(tx, 'revoked', link, { by, requestId });
    return true;
  }, CONFLICT_RETRIES);
}

function requirePages(given: readonly string[], known: readonly string[]): void {
  const faults = given
    .filter((page) => !known.includes(page))
    .map((page) => ({
      id: 'E011' as const,
      message: `portalLink(): the portal has no page ${JSON.stringify(page)}.`,
      hint: didYouMean(page, known).trim() || `Its pages: ${known.join(', ')}.`,
    }));
  if (faults.length > 0) throw new InvalidOptions(faults);
}

/** A link is for one tenant or for none; a session of it gets into no other, whatever its requests name. */
async function tenantOfLink(tx: Db, state: PortalState, user: User, given: string | null): Promise<string | null> {
  if (!state.registry.tenants.exist) {
    if (given !== null) throw coreErrors.not_a_member({ detail: 'The app has no tenants.' });
    return null;
  }
  if (given === null) return '';
  const found = await tenantOfMember(tx, state, user.id, given);
  if (found === null) throw coreErrors.not_a_member({ detail: 'The user of the link is not a member of this tenant.' });
  return found;
}

/** The audit entry of a link. */
export async function recordLink(
  tx: Db,
  change: 'created' | 'opened' | 'revoked',
  { id, user_id, tenant_id }: { readonly id: string; readonly user_id: string; readonly tenant_id: string | null },
  { by = null, requestId = null }: LinkContext,
  metadata: object = {},
): Promise<void> {
  const target = { target_type: 'portal_link', target_id: id, request_id: requestId, tenant: tenant_id };
  await portalState
    .of(tx)
    .registry.audit?.record(tx, [{ ...target, actor: by, action: `portal_link.${change}`, metadata: { user_id, ...metadata } }]);
}
