import { StartUpError } from '../app/check/start-up-error.ts';
import type { LoginProvider } from '../app/declare/login-provider.ts';
import type { App, Module, ModuleMount } from '../app/declare/module.ts';
import { isAuthenticated } from '../permissions/built-ins.ts';
import { listController } from '../admin/serve/list-controller.ts';
import { overviewController, stateController } from '../admin/serve/overview-controller.ts';
import { resourceController } from '../admin/serve/resource-controller.ts';
import { sessionController } from '../admin/serve/session-controller.ts';
import { siteController } from '../admin/serve/site-controller.ts';
import { siteHeaders } from '../admin/serve/site-headers.ts';
import { AdminSite } from '../admin/state/admin-site.ts';
import type { SiteKind } from '../admin/state/site-kind.ts';
import { accountsEnvironment } from '../contrib/accounts/config.ts';
import type { Database, Db } from '../db/engine/db.ts';
import { Retention } from '../work/retention.ts';
import { accessIn, guardPages, guardTenant } from './access.ts';
import { elementController, frameController } from './embed/controller.ts';
import { portalErrors } from './errors.ts';
import { linkController } from './links/controller.ts';
import { withLinks } from './links/login.ts';
import { LinkReach } from './links/reach.ts';
import { removeExpired, removeOf } from './links/rows.ts';
import { linkScopeOf, PORTAL_SESSION, portalAuthenticator } from './links/session.ts';
import { portalState } from './links/state.ts';
import { initial } from './migrations/0001_initial.ts';
import { portalLinks } from './models.ts';
import { readPortalOptions, type PortalOptions } from './options.ts';
import { portalDeclarations, portalPages } from './declarations.ts';
import type { PageResource } from './portal-resource.ts';
import { portalClients, portalReference, REFERENCE } from './reference.ts';
import { sectionsController } from './sections-controller.ts';
import { tenantController } from './tenant-controller.ts';

/**
 * The developers' portal: the pages where your customers' developers manage keys and endpoints and see their deliveries, requests and usage. It shows
 * what the mounted controllers show to the same person; every page and change is a request of the API.
 *
 * @example
 * ```ts
 * createApp({ modules: [accounts(), apiKeys(), webhooks(), requests(), portal()], mount: { '/v1': { '/api-keys': ApiKeyController } } });
 * ```
 */
export function portal(options: PortalOptions = {}): Module {
  const settings = readPortalOptions(options);
  const { canManage, prefix, logo, colors, locale, links, embedIn } = settings;
  const reach = new LinkReach();
  let pages: readonly PageResource[] = [];
  const kind: SiteKind = {
    name: 'portal',
    permission: isAuthenticated,
    isForStaff: false,
    declarations(app) {
      pages = portalPages(app);
      reach.learn(pages, { authenticators: app.authenticators, login: app.registry.login?.authenticators ?? null });
      return portalDeclarations(app, pages);
    },
    portal: { origins: embedIn, logo, accent: colors.accent ?? null, accent_dark: colors.accentDark ?? null, locale, links },
    isByLink: (principal) => linkScopeOf(principal) !== undefined,
    access: (context) => accessIn(context, { canManage, pages }),
  };
  const site = new AdminSite({ ...settings, roles: null, viewAs: false, alerts: null }, kind);
  const isSecure = !accountsEnvironment().development;
  let database: Database | undefined;
  let retention: Retention | undefined;
  return {
    name: 'portal',
    after: ['accounts'],
    models: [portalLinks],
    migrations: [initial],
    errors: portalErrors,
    authenticators: [portalAuthenticator(isSecure, reach)],
    middleware: [siteHeaders('portal'), guardPages(prefix, canManage), guardTenant(prefix)],
    // Whoever leaves has no link and no session.
    provides: () => ({
      userChanges: [async (tx, userId) => ((await isActive(tx, userId)) ? undefined : removeOf(tx, userId))],
      memberChanges: [(tx, { userId, tenant }) => removeOf(tx, userId, tenant)],
    }),
    mount: ({ login }) => controllers(site, withLinks(login, prefix, isSecure), { isSecure, embedIn }),
    install(app: App) {
      site.installIn(app);
      requireOwn(app);
    },
    async setup({ clock, registry, users, db }) {
      await site.readFiles();
      if (users === null) return;
      portalState.bind((database = db), {
        clock,
        registry,
        users,
        prefix,
        pages: [...site.resources, ...site.pages].map(({ name }) => name),
      });
    },
    start({ db, clock, log, users }) {
      if (users === null) return;
      retention = new Retention({
        prune: () => removeExpired(db, clock.now()),
        failed: (error) => log.warn({ err: error }, 'links to the portal that have ended could not be removed'),
      });
      retention.start();
    },
    async stop() {
      await retention?.stop();
      if (database !== undefined) portalState.release(database);
      [retention, database] = [undefined, undefined];
    },
  };
}

/** A session of a link is for the pages: no route of the application takes it. */
function requireOwn({ routes }: App): void {
  const faults = routes
    .filter(({ authenticators, metadata }) => metadata['portal'] !== true && authenticators.some(({ name }) => name === PORTAL_SESSION))
    .map(({ method, path }) => ({
      id: 'E011' as const,
      message: `${method} ${path} names "${PORTAL_SESSION}" in auth: a link to the portal opens its pages and no other route.`,
      hint: 'Remove it from `auth`. Pages of the portal call the operations of a resource for the link: declare one with `portal: { pages }`.',
    }));
  if (faults.length > 0) throw new StartUpError(faults);
}

async function isActive(tx: Db, userId: string): Promise<boolean> {
  const user = await portalState.find(tx)?.users.findById(tx, userId);
  return user?.is_active === true;
}

function controllers(
  site: AdminSite,
  login: LoginProvider,
  { isSecure, embedIn }: { readonly isSecure: boolean; readonly embedIn: readonly string[] },
): ModuleMount {
  const { prefix } = site.settings;
  const account = login.form?.account?.({ hidden: true, metadata: { portal: true } });
  return {
    [prefix]: siteController(site),
    '/': portalReference(
      prefix,
      () => site.title,
      login,
      () => site.app,
    ),
    [`${prefix}/${REFERENCE}/clients`]: portalClients(login, () => site.app),
    // Nothing for frames where no page may frame it.
    ...(embedIn.length === 0
      ? {}
      : { [`${prefix}/embed`]: frameController(site, embedIn), [`${prefix}/kit-portal.js`]: elementController(site) }),
    [`${prefix}/api`]: sessionController(site, login),
    ...(account === undefined ? {} : { [`${prefix}/api/account`]: account }),
    [`${prefix}/link`]: linkController(site, isSecure),
    [`${prefix}/api/overview`]: overviewController(site, login),
    [`${prefix}/api/pages`]: sectionsController(site, login),
    [`${prefix}/api/tenants`]: tenantController(site, login),
    [`${prefix}/api/state`]: stateController(site, login),
    [`${prefix}/api/resources`]: resourceController(site, login),
    [`${prefix}/api/lists`]: listController(site, login),
  };
}
