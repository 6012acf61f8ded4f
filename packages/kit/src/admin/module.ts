import type { Module } from '../app/module.ts';
import type { Middleware } from '../http/middleware.ts';
import { accountController } from './account-controller.ts';
import { AdminSite } from './admin-site.ts';
import { adminErrors } from './errors.ts';
import { listController } from './list-controller.ts';
import { savedFilters as savedFiltersTable } from './migrations/0001_saved_filters.ts';
import { savedFilters } from './models.ts';
import { readAdminOptions, type AdminOptions } from './options.ts';
import { overviewController } from './overview-controller.ts';
import { resourceController } from './resource-controller.ts';
import { sessionController } from './session-controller.ts';
import { siteController } from './site-controller.ts';

/**
 * The admin site: lists, records and actions of every module that declares some, for staff.
 *
 * @example
 * ```ts
 * createApp({ modules: [accounts(), admin({ resources: [modelResource(orderResource)] })], mount });
 * ```
 */
export function admin(options: AdminOptions = {}): Module {
  const settings = readAdminOptions(options);
  const site = new AdminSite(settings);
  const { prefix } = settings;
  return {
    name: 'admin',
    requires: ['accounts'],
    errors: adminErrors,
    models: [savedFilters],
    migrations: [savedFiltersTable],
    middleware: [headers],
    mount: {
      [prefix]: siteController(site),
      [`${prefix}/api`]: sessionController(site),
      [`${prefix}/api/account`]: accountController(),
      [`${prefix}/api/overview`]: overviewController(site),
      [`${prefix}/api/resources`]: resourceController(site),
      [`${prefix}/api/lists`]: listController(site),
    },
    install: (app) => site.installIn(app),
    setup: () => site.readFiles(),
  };
}

/** On every answer of the site, errors included. A handler's own are kept. */
const HEADERS: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

const headers: Middleware = {
  name: 'admin_headers',
  appliesTo: ({ metadata }) => metadata['admin'] === true,
  onResponse({ reply, route }) {
    // Requests without a route do not belong to the site.
    if (route === null) return;
    for (const [name, value] of Object.entries(HEADERS)) if (!reply.hasHeader(name)) reply.header(name, value);
  },
};
