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
import { readPortalOptions, type PortalOptions } from './options.ts';
import { portalDeclarations } from './declarations.ts';
import { portalReference } from './reference.ts';
import { sectionsController } from './sections-controller.ts';

const kind: SiteKind = { name: 'portal', permission: isAuthenticated, isForStaff: false, declarations: portalDeclarations };

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
  const site = new AdminSite({ ...settings, roles: null, alerts: null }, kind);
  return {
    name: 'portal',
    after: ['accounts'],
    middleware: [siteHeaders('portal')],
    mount: ({ login }) => (login === null ? {} : controllers(site, login)),
    install: (app: App) => site.installIn(app),
    setup: () => site.readFiles(),
  };
}

function controllers(site: AdminSite, login: LoginProvider): ModuleMount {
  const { prefix } = site.settings;
  const account = login.form?.account?.({ hidden: true, metadata: { portal: true } });
  return {
    [prefix]: siteController(site),
    '/': portalReference(
      prefix,
      () => site.settings.title ?? site.app.title,
      login,
      () => site.app,
    ),
    [`${prefix}/api`]: sessionController(site, login),
    ...(account === undefined ? {} : { [`${prefix}/api/account`]: account }),
    [`${prefix}/api/overview`]: overviewController(site, login),
    [`${prefix}/api/pages`]: sectionsController(site, login),
    [`${prefix}/api/state`]: stateController(site, login),
    [`${prefix}/api/resources`]: resourceController(site, login),
    [`${prefix}/api/lists`]: listController(site, login),
  };
}
