import type { Module } from '../../app/declare/module.ts';
import { pageHeaders, pagesController } from './controller.ts';
import { readPagesOptions, type PagesOptions } from './options.ts';
import { PageSite } from './site.ts';

/**
 * Pages for the people of an application: login, sign-up, new passwords, invitations, their account, their organizations and the members of these. They call
 * the routes of accounts() or betterAuth(), and of tenants(); staff log in there where the login has no page of its own.
 *
 * @example
 * ```ts
 * createApp({
 *   modules: [accounts(), tenants({ create: isAuthenticated }), pages()],
 *   mount: { '/v1': { '/account': AccountController, '/tenants': TenantController } },
 * });
 * ```
 */
export function pages(options: PagesOptions = {}): Module {
  const settings = readPagesOptions(options);
  const site = new PageSite(settings);
  const { prefix } = settings;
  return {
    name: 'pages',
    loginPages: { loginUrl: `${prefix}/sign-in`, accountUrl: `${prefix}/` },
    middleware: [pageHeaders],
    mount: { [prefix]: pagesController(site) },
    install(app) {
      site.prepare(app);
    },
  };
}
