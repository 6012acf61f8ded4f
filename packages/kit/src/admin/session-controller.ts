import { accountsOf } from '../contrib/accounts/accounts.ts';
import { loginClientThrottle, logoutClientThrottle } from '../contrib/accounts/login-throttle.ts';
import { publicUser } from '../contrib/accounts/manage-users.ts';
import { csrfTokenOf, endSession, logInByPassword } from '../contrib/accounts/password-login.ts';
import { LoginBody } from '../contrib/accounts/schemas.ts';
import type { UserRow } from '../contrib/accounts/store.ts';
import type { AdminContext } from '../app/admin/declaration.ts';
import type { User } from '../auth/principal.ts';
import type { Db } from '../db/db.ts';
import { coreErrors } from '../errors/core-errors.ts';
import { hasCode, isKitError } from '../errors/kit-error.ts';
import { Controller } from '../http/controller.ts';
import { jsonSchema } from '../http/json-schema.ts';
import { route } from '../http/route.ts';
import type { HandlerContext } from '../http/handler-context.ts';
import { allowAny, isAuthenticated } from '../permissions/built-ins.ts';
import type { AdminSite } from './admin-site.ts';
import { adminErrors } from './errors.ts';
import { roleOf } from './staff-roles.ts';
import type { AdminSession } from './wire.ts';

const SessionAnswer = jsonSchema<AdminSession>({});

/** Logging in and out with the accounts of the application: its throttles, its cookie, its CSRF token. Staff only. */
export function sessionController(site: AdminSite): Controller {
  const facts = { hidden: true, metadata: { admin: true } } as const;

  class KitAdminSessionController extends Controller {
    login = route.post(
      '/login',
      { ...facts, body: LoginBody, response: SessionAnswer, permission: allowAny, throttles: [loginClientThrottle], csrf: false, auth: [] },
      async (context) => {
        let refused: UserRow | null = null;
        const admit = async (tx: Db, user: UserRow): Promise<void> => {
          if (!user.is_staff) {
            refused = user;
            throw adminErrors.staff_only();
          }
          await record(site, tx, context, 'admin.login', user);
        };
        try {
          const { user, csrf_token, second_factor } = await logInByPassword(context, context.body, admit);
          // The session is open, without staff rights: it can set up the codes.
          if (second_factor === 'setup_required') throw coreErrors.second_factor_required({ extensions: { csrf_token } });
          const principal = { user: publicUser(user), scheme: 'session', scopes: null };
          return await answer(site, site.context(context, principal), csrf_token);
        } catch (error) {
          // The name that was typed is not logged: it may be a password in the wrong field.
          if (isKitError(error)) context.log.warn({ code: error.code, client: context.client.address }, 'admin: a login was refused');
          if (hasCode(error, 'staff_only') && refused !== null) await record(site, context.db, context, 'admin.login_refused', refused);
          throw error;
        }
      },
    );

    logout = route.post(
      '/logout',
      { ...facts, permission: allowAny, auth: ['session'], throttles: [logoutClientThrottle] },
      async (context) => {
        const { principal } = context;
        await endSession(context);
        if (principal !== null) await record(site, context.db, context, 'admin.logout', principal.user);
      },
    );

    session = route.get(
      '/session',
      { ...facts, response: SessionAnswer, permission: isAuthenticated, auth: ['session'] },
      async (context) => {
        const csrf_token = csrfTokenOf(context, accountsOf(context.db)) ?? '';
        // A refused user can still log out, or set up one-time codes: both need the token.
        if (context.principal.secondFactor === 'missing') throw coreErrors.second_factor_required({ extensions: { csrf_token } });
        if (!context.user.is_staff)
          throw adminErrors.staff_only({ detail: 'This account is not a member of the staff.', extensions: { csrf_token } });
        return answer(site, site.context(context, context.principal), csrf_token);
      },
    );
  }
  return new KitAdminSessionController();
}

async function answer(site: AdminSite, asked: AdminContext, csrf_token: string): Promise<AdminSession> {
  const { title, version } = site.app;
  const { user } = asked.principal;
  const { id, username } = user;
  const role = await roleOf(site.settings, user);
  const resources = await site.shapesFor(role, asked);
  return { user: { id, username, role }, csrf_token, site: { title: site.settings.title ?? title, version, resources } };
}

async function record(
  { app }: AdminSite,
  db: Db,
  { principal, requestId, client }: Pick<HandlerContext, 'principal' | 'requestId' | 'client'>,
  action: string,
  user: User,
): Promise<void> {
  const actor = principal ?? publicUser(user);
  const metadata = { client: client.address };
  await app.registry.audit?.record(db, [{ actor, action, target_type: 'user', target_id: user.id, metadata, request_id: requestId }]);
}
