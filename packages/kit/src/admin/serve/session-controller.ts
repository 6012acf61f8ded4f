import type { AdminContext } from '../../app/admin/declaration.ts';
import type { LoginForm, LoginProvider } from '../../app/declare/login-provider.ts';
import type { Principal, User } from '../../auth/people/principal.ts';
import type { Db } from '../../db/engine/db.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { isKitError } from '../../errors/kit-error.ts';
import { Controller } from '../../http/compile/controller.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import { route, type Route } from '../../http/declare/route.ts';
import type { HandlerContext } from '../../http/declare/handler-context.ts';
import { allowAny, isAuthenticated } from '../../permissions/built-ins.ts';
import { clientThrottle } from '../../throttle/throttles.ts';
import type { AdminSite } from '../state/admin-site.ts';
import { namedFor } from '../state/site-kind.ts';
import { adminErrors } from '../../screens/errors.ts';
import { roleOf } from '../staff/staff-roles.ts';
import type { AdminLogin, AdminSession } from '../wire/wire.ts';
import { ownRecord } from '../../observe/own-record.ts';

const SessionAnswer = jsonSchema<AdminSession>({});
const LoginAnswer = jsonSchema<AdminLogin>({});

const typed = (maxLength: number) => ({ type: 'string', minLength: 1, maxLength, 'x-sensitive': true });
const LoginBody = jsonSchema<{ login: string; password: string; code?: string }>({
  type: 'object',
  properties: { login: { type: 'string', minLength: 1, maxLength: 254 }, password: typed(1000), code: typed(40) },
  required: ['login', 'password'],
  additionalProperties: false,
});

/** Logging out is open to everyone, so that a dead cookie can be cleared; this bounds what that costs. */
const logoutThrottle = clientThrottle('60/min', { name: 'admin_logout_client' });

/** Logging in and out through the login provider of the application: its throttles, its cookie, its CSRF token. The admin site admits staff only. */
export function sessionController(site: AdminSite, login: LoginProvider): Controller {
  const { authenticators: auth, form } = login;
  const facts = { hidden: true, metadata: { [site.kind.name]: true } } as const;

  class KitSiteSessionController extends Controller {
    loginPage = route.get('/login', { ...facts, response: LoginAnswer, permission: allowAny, auth: [] }, () => loginFacts(site, login));

    logout = route.post('/logout', { ...facts, permission: allowAny, auth, throttles: [logoutThrottle] }, async (context) => {
      const { principal } = context;
      await login.logOut(context);
      if (principal !== null) await record(site, context.db, context, `${site.kind.name}.logout`, principal.user);
    });

    session = route.get('/session', { ...facts, response: SessionAnswer, permission: isAuthenticated, auth }, async (context) => {
      const csrf_token = (await login.csrfToken?.(context)) ?? '';
      // A refused user can still log out, or set up a second factor: both need the token.
      if (site.kind.isForStaff && context.principal.secondFactor === 'missing')
        throw coreErrors.second_factor_required({ extensions: { csrf_token } });
      if (site.kind.isForStaff && !context.user.is_staff)
        throw adminErrors.staff_only({ detail: 'This account is not a staff member.', extensions: { csrf_token } });
      return answer(site, login, site.context(context, context.principal), csrf_token);
    });
  }
  if (form === undefined) return new (namedFor(site.kind, KitSiteSessionController))();

  class KitSiteFormController extends KitSiteSessionController {
    login = loginRoute(site, login, form as LoginForm);
  }
  return new (namedFor(site.kind, KitSiteFormController))();
}

function loginRoute(site: AdminSite, login: LoginProvider, form: LoginForm): Route {
  const facts = { hidden: true, metadata: { [site.kind.name]: true } } as const;
  const settings = { ...facts, body: LoginBody, response: SessionAnswer, throttles: form.throttles ?? [], csrf: false, auth: [] } as const;
  return route.post('/login', { ...settings, permission: allowAny }, async (context) => {
    let refused: User | null = null;
    const admit = async (tx: Db, user: User): Promise<void> => {
      if (site.kind.isForStaff && !user.is_staff) {
        refused = user;
        throw adminErrors.staff_only();
      }
      await record(site, tx, context, `${site.kind.name}.login`, user);
    };
    try {
      const { user, csrfToken, secondFactor } = await form.logIn(context, context.body, admit);
      const csrf_token = csrfToken ?? '';
      // The session is open, without staff rights: it can set up the second factor.
      if (site.kind.isForStaff && secondFactor === 'missing') throw coreErrors.second_factor_required({ extensions: { csrf_token } });
      const principal = { user, scheme: login.authenticators[0] ?? '', scopes: null };
      return await answer(site, login, site.context(context, principal), csrf_token);
    } catch (error) {
      // The name that was typed is not logged: it may be a password in the wrong field.
      if (isKitError(error))
        context.log.warn(ownRecord({ code: error.code, client: context.client.address }), 'admin: a login was refused');
      if (isKitError(error, 'staff_only') && refused !== null) await record(site, context.db, context, 'admin.login_refused', refused);
      throw error;
    }
  });
}

function loginFacts(site: AdminSite, { loginUrl, accountUrl, form }: LoginProvider): AdminLogin {
  const url = form === undefined ? (loginUrl ?? null) : null;
  const { name, portal } = site.kind;
  const by_link = form === undefined && url === null;
  return {
    site: name,
    title: site.title,
    url,
    account: form?.account !== undefined,
    account_url: accountUrl ?? null,
    ...(portal === undefined ? {} : { portal: { by_link, ...portal } }),
  };
}

/** Who came by a link has no account here, and gets in again by another link. */
function callersLogin(site: AdminSite, login: LoginProvider, principal: Principal): AdminLogin {
  const facts = loginFacts(site, login);
  if (facts.portal === undefined || site.kind.isByLink?.(principal) !== true) return facts;
  return { ...facts, url: null, account: false, account_url: null, portal: { ...facts.portal, by_link: true } };
}

async function answer(site: AdminSite, login: LoginProvider, asked: AdminContext, csrf_token: string): Promise<AdminSession> {
  const { version } = site.app;
  const { user } = asked.principal;
  const { id, username } = user;
  const role = await roleOf(site.settings, user);
  const resources = await site.shapesFor(role, asked);
  const access = await site.kind.access?.(asked);
  const pages = site.pages
    .filter(({ name }) => access?.shows(name) !== false)
    .map((page) => {
      const { read: _, ...shape } = page;
      return shape;
    });
  const own = pages.length === 0 ? {} : { pages };
  const shown = {
    title: site.title,
    version,
    ...(site.settings.viewAs ? { view_as: true } : {}),
    login: callersLogin(site, login, asked.principal),
    resources,
    ...own,
  };
  return { user: { id, username, role }, csrf_token, site: shown };
}

async function record(
  { app }: AdminSite,
  db: Db,
  { principal, requestId, client }: Pick<HandlerContext, 'principal' | 'requestId' | 'client'>,
  action: string,
  user: User,
): Promise<void> {
  const actor = principal ?? user;
  const metadata = { client: client.address };
  await app.registry.audit?.record(db, [{ actor, action, target_type: 'user', target_id: user.id, metadata, request_id: requestId }]);
}
