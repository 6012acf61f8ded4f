import { createHash } from 'node:crypto';
import { APIError, createAuthMiddleware, getSessionFromCtx } from 'better-auth/api';
import type { BetterAuthPlugin } from 'better-auth';
import type { User } from '../../auth/people/principal.ts';
import { currentTransactionOn } from '../../db/engine/ambient.ts';
import type { Database, Db } from '../../db/engine/db.ts';
import { refuseOrphanedInvitation, refuseWhileSuspended, takeOverOrphanedInvitation } from './invitations.ts';
import { joinedDatabase } from './joined-kysely.ts';
import { deleteSessions, deleteUsedCodes, insertUsedCode, isActiveUser } from './store.ts';
import { betterAuthState, passOnChanges } from './user-changes.ts';

export const PLUGIN_ID = 'kit';

/** Marks the response of `get-session` in a session in which staff act as the user; it is not passed on. */
export const IMPERSONATED_HEADER = 'kit-impersonated';

/** Longer than a one-time code is good for: three steps of 30 seconds. */
const CODE_KEPT_MS = 5 * 60_000;

const REMOVE_MEMBERS: ReadonlySet<string> = new Set(['/organization/remove-member', '/organization/leave', '/organization/delete']);

/**
 * What a session must not do in which staff act as the user: change how the user logs in, plant or read another credential, or end the account. Some of
 * these ask for the password, which staff may have set.
 */
const NOT_WHILE_IMPERSONATING: ReadonlySet<string> = new Set([
  '/change-email',
  '/change-password',
  '/set-password',
  '/delete-user',
  '/delete-user/callback',
  '/delete-anonymous-user',
  '/link-social',
  '/unlink-account',
  '/oauth2/link',
  '/get-access-token',
  '/refresh-token',
  '/two-factor/enable',
  '/two-factor/disable',
  '/two-factor/generate-backup-codes',
  '/two-factor/get-totp-uri',
  '/passkey/generate-register-options',
  '/passkey/verify-registration',
  '/passkey/update-passkey',
  '/passkey/delete-passkey',
  '/one-time-token/generate',
  // A JWT does not say that staff act as the user, and outlives the session.
  '/token',
  '/device/approve',
  '/phone-number/verify',
  '/email-otp/request-email-change',
  '/email-otp/change-email',
]);

/** The user name of the plugin `username()` is a name to log in with. */
function changesUsername(path: string, body: unknown): boolean {
  return path === '/update-user' && typeof body === 'object' && body !== null && 'username' in body;
}

/** What a hook of better-auth is given of the request that caused the change. */
interface Endpoint {
  readonly path?: string | undefined;
  readonly body?: unknown;
  readonly context: {
    readonly session?: { readonly user: { readonly id: string; readonly email: string } } | null;
    /** Also ends the copy of a session in secondaryStorage. */
    readonly internalAdapter?: { deleteSession(token: string): Promise<unknown> };
  };
}

/**
 * For `plugins` of a better-auth instance. Notifies the toolkit's modules of bans, roles, deprovisioned users and deletions, and closes what
 * better-auth leaves open: a one-time code opens one session, a user that SCIM has deactivated opens none, a new password ends the other sessions,
 * and an invitation is accepted only by a verified email address, and only while its sender could send it.
 */
export function kitPlugin(): BetterAuthPlugin {
  let database: Database | undefined;

  async function passOn(endpoint: unknown): Promise<void> {
    const state = database === undefined ? undefined : betterAuthState.find(database);
    // Without an app the changes stay on the list.
    if (database === undefined || state === undefined) return;
    try {
      await passOnChanges(currentTransactionOn(database) ?? database, actorOf(endpoint as Endpoint | null));
    } catch (error) {
      state.log.error({ err: error }, 'could not notify the modules of a change; the job better_auth.user_changes tries again');
    }
  }

  /** Whatever opens a session passes here. */
  async function checkNewSession(userId: string, endpoint: Endpoint | null): Promise<void> {
    if (database === undefined) return;
    const db = currentTransactionOn(database) ?? database;
    if (!(await isActiveUser(db, userId))) throw userDeactivated();
    if (await isServiceUser(db, userId)) throw serviceUser();
    if (endpoint !== null && endpoint.path === '/two-factor/verify-totp') await refuseUsedCode(db, userId, endpoint.body);
  }

  /** The user may have been deactivated since the check: a session that is left would be good again after the reactivation. */
  async function recheckNewSession(session: { readonly userId: string; readonly token: string }, endpoint: Endpoint | null): Promise<void> {
    if (database === undefined) return;
    const db = currentTransactionOn(database) ?? database;
    if (await isActiveUser(db, session.userId)) return;
    await endpoint?.context.internalAdapter?.deleteSession(session.token);
    await deleteSessions(db, session.userId);
    throw userDeactivated();
  }

  /** A service user is never staff. */
  async function refuseStaff(changes: Readonly<Record<string, unknown>>, endpoint: Endpoint | null): Promise<void> {
    const { role } = changes;
    const { userId } = (endpoint?.body ?? {}) as { readonly userId?: unknown };
    if (database === undefined || typeof role !== 'string' || role === '' || typeof userId !== 'string') return;
    if (role !== 'user' && (await isServiceUser(currentTransactionOn(database) ?? database, userId))) throw serviceUser();
  }

  async function refuseUsedCode(db: Db, userId: string, body: unknown): Promise<void> {
    const { code } = (body ?? {}) as { readonly code?: unknown };
    const now = db.clock.now();
    await deleteUsedCodes(db, new Date(now.getTime() - CODE_KEPT_MS));
    const digest = createHash('sha256')
      .update(`${userId}:${String(code).trim()}`)
      .digest('hex');
    if (await insertUsedCode(db, userId, digest, now)) return;
    throw new APIError('UNAUTHORIZED', { code: 'INVALID_CODE', message: 'Invalid code' });
  }

  return {
    id: PLUGIN_ID,
    init(context) {
      database = joinedDatabase(context.options.database);
      return {
        options: {
          databaseHooks: {
            user: {
              update: {
                before: (changes, endpoint) => refuseStaff(changes, endpoint as Endpoint | null),
                after: (_user, endpoint) => passOn(endpoint),
              },
              delete: { after: (_user, endpoint) => passOn(endpoint) },
            },
            session: {
              create: {
                before: (session, endpoint) => checkNewSession(session.userId, endpoint as Endpoint | null),
                after: (session, endpoint) => recheckNewSession(session, endpoint as Endpoint | null),
              },
            },
          },
        },
      };
    },
    hooks: {
      before: [
        {
          matcher: ({ path, body }) => path !== undefined && (NOT_WHILE_IMPERSONATING.has(path) || changesUsername(path, body)),
          handler: createAuthMiddleware(async (endpoint) => {
            const session = (await getSessionFromCtx(endpoint))?.session as { readonly impersonatedBy?: string | null } | undefined;
            if ((session?.impersonatedBy ?? null) === null) return;
            throw new APIError('FORBIDDEN', {
              code: 'IMPERSONATED_SESSION',
              message: 'This cannot be done while you act as another user. Stop impersonating first.',
            });
          }),
        },
        {
          matcher: ({ path }) => path?.startsWith('/organization/') === true,
          handler: createAuthMiddleware(async (endpoint) => {
            if (database === undefined) return;
            const session = (await getSessionFromCtx(endpoint))?.session as { readonly activeOrganizationId?: string | null } | undefined;
            await refuseWhileSuspended(currentTransactionOn(database) ?? database, endpoint, session?.activeOrganizationId ?? null);
          }),
        },
        {
          matcher: ({ path }) => path === '/change-password',
          handler: createAuthMiddleware(async (endpoint) => ({
            context: { body: { ...(endpoint.body as object), revokeOtherSessions: true } },
          })),
        },
        {
          matcher: ({ path }) => path === '/organization/accept-invitation',
          handler: createAuthMiddleware(async (endpoint) => {
            const { requireEmailVerificationOnInvitation: isRequired = true } = (endpoint.context.getPlugin('organization')?.options ??
              {}) as { readonly requireEmailVerificationOnInvitation?: boolean };
            if (!isRequired) return;
            const session = await getSessionFromCtx(endpoint);
            if (session === null || session.user.emailVerified) return;
            throw new APIError('FORBIDDEN', { code: 'EMAIL_VERIFICATION_REQUIRED', message: 'Verify your email address first.' });
          }),
        },
        {
          matcher: ({ path }) => path === '/organization/accept-invitation',
          handler: createAuthMiddleware(async (endpoint) => {
            if (database !== undefined) await refuseOrphanedInvitation(currentTransactionOn(database) ?? database, endpoint);
          }),
        },
      ],
      after: [
        {
          // SCIM deactivates users without a change of the user itself; and there are no hooks for members.
          matcher: ({ path }) => path !== undefined && (path.startsWith('/scim/') || REMOVE_MEMBERS.has(path)),
          handler: createAuthMiddleware(async (endpoint) => {
            if (endpoint.method !== 'GET') await passOn({ context: { session: await getSessionFromCtx(endpoint) } });
          }),
        },
        {
          matcher: ({ path }) => path === '/get-session',
          handler: createAuthMiddleware(async (endpoint) => {
            const { session, newSession } = endpoint.context;
            const found = (session ?? newSession)?.session as { readonly impersonatedBy?: string | null } | undefined;
            if ((found?.impersonatedBy ?? null) !== null) endpoint.setHeader(IMPERSONATED_HEADER, 'true');
          }),
        },
        {
          matcher: ({ path }) => path === '/organization/invite-member',
          handler: createAuthMiddleware(async (endpoint) => {
            if (endpoint.context.returned instanceof Error || database === undefined) return;
            const session = await getSessionFromCtx(endpoint);
            if (session !== null) await takeOverOrphanedInvitation(currentTransactionOn(database) ?? database, endpoint, session.user.id);
          }),
        },
        {
          matcher: ({ path }) => path === '/admin/set-user-password',
          handler: createAuthMiddleware(async (endpoint) => {
            if (endpoint.context.returned instanceof Error) return;
            const { userId } = endpoint.body as { readonly userId: string };
            await endpoint.context.internalAdapter.deleteUserSessions(userId);
          }),
        },
      ],
    },
  } satisfies BetterAuthPlugin;
}

async function isServiceUser(db: Db, userId: string): Promise<boolean> {
  return (await betterAuthState.find(db)?.registry.serviceUsers?.among(db, [userId]))?.has(userId) === true;
}

function serviceUser(): APIError {
  return new APIError('FORBIDDEN', {
    code: 'SERVICE_USER',
    message: 'This is a service user of an organization: nobody logs in as it, and it is never staff.',
  });
}

function userDeactivated(): APIError {
  return new APIError('FORBIDDEN', { code: 'USER_DEACTIVATED', message: 'This user has been deactivated.' });
}

/** The staff member who made the change, where better-auth knows one. */
function actorOf(endpoint: Endpoint | null): User | string {
  const user = endpoint?.context.session?.user;
  if (user === undefined) return 'better-auth';
  return { id: user.id, username: user.email, email: user.email, is_active: true, is_staff: false, is_superuser: false };
}
