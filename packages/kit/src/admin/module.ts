import type { LoginProvider } from '../app/declare/login-provider.ts';
import type { Module, ModuleMount } from '../app/declare/module.ts';
import type { UserChangeListener } from '../app/declare/registry.ts';
import { AdminSite } from './state/admin-site.ts';
import { adminErrors } from '../screens/errors.ts';
import { listController } from './serve/list-controller.ts';
import { namelessRecords } from './model/resource-faults.ts';
import { deleteSavedFiltersOf } from './model/saved-filters.ts';
import { AlertWatch } from './alerts/alert-watch.ts';
import { initial } from './migrations/0001_initial.ts';
import { views as viewsMigration } from './migrations/0002_views.ts';
import { sharedViews } from './migrations/0003_shared_views.ts';
import { alertChecks, firingAlerts, savedFilters, views } from './models.ts';
import { readAdminOptions, type AdminOptions } from './options.ts';
import { overviewController, stateController } from './serve/overview-controller.ts';
import { resourceController } from './serve/resource-controller.ts';
import { sessionController } from './serve/session-controller.ts';
import { siteHeaders } from './serve/site-headers.ts';
import { viewController } from './serve/view-controller.ts';
import { viewingOf } from './serve/views.ts';
import { siteController } from './serve/site-controller.ts';

/**
 * The admin site: lists, records and actions of every module that declares some, for staff.
 *
 * @example
 * ```ts
 * const shop: Module = { name: 'shop', models: [orders], admin: { resources: [modelResource(orderResource)] } };
 * createApp({ modules: [accounts(), shop, admin()], mount });
 * ```
 */
export function admin(options: AdminOptions = {}): Module {
  const settings = readAdminOptions(options);
  const site = new AdminSite(settings);
  const watch = new AlertWatch(site);
  return {
    name: 'admin',
    // Its users list and its login are there first, where it is installed.
    after: ['accounts'],
    errors: adminErrors,
    checks: [namelessRecords(site)],
    models: [savedFilters, firingAlerts, alertChecks, views],
    migrations: [initial, viewsMigration, sharedViews],
    middleware: [siteHeaders('admin'), site.responseTimes.middleware],
    // Without a login nothing is mounted, and `install` says what is missing.
    mount: ({ login }) => (login === null ? {} : controllers(site, login)),
    provides: () => ({ userChanges: [forgetUser(site)], ...(settings.viewAs ? { viewing: viewingOf(site) } : {}) }),
    install: (app) => site.installIn(app),
    async setup({ databases, clock }) {
      site.startedAt = clock.now();
      site.stoppedReads.start(Object.values(databases), () => clock.now());
      await site.readFiles();
    },
    metrics: (registry) => watch.declareMetrics(registry),
    start: () => watch.start(),
    async stop() {
      site.stoppedReads.stop();
      await watch.stop();
    },
  };
}

function controllers(site: AdminSite, login: LoginProvider): ModuleMount {
  const { prefix } = site.settings;
  const account = login.form?.account?.({ hidden: true, metadata: { admin: true } });
  return {
    [prefix]: siteController(site),
    [`${prefix}/api`]: sessionController(site, login),
    ...(account === undefined ? {} : { [`${prefix}/api/account`]: account }),
    [`${prefix}/api/overview`]: overviewController(site, login),
    [`${prefix}/api/state`]: stateController(site, login),
    [`${prefix}/api/resources`]: resourceController(site, login),
    [`${prefix}/api/lists`]: listController(site, login),
    ...(site.settings.viewAs ? { [`${prefix}/api/view`]: viewController(site, login) } : {}),
  };
}

/** Called when users are activated and deactivated, too: those keep their filters. */
function forgetUser(site: AdminSite): UserChangeListener {
  return async (tx, userId) => {
    const { users } = site.app;
    if (users !== null && (await users.findById(tx, userId)) === null) await deleteSavedFiltersOf(tx, userId);
  };
}
