import type { AdminDeclaration, AdminSectionsPage } from '../app/admin/declaration.ts';
import type { App } from '../app/declare/module.ts';
import { firstSteps } from './first-steps.ts';
import { routesOf } from './page-routes.ts';
import { PageResource } from './portal-resource.ts';
import { referencePage } from './reference.ts';

/** The pages of the modules, as far as the app has mounted their operations. */
export function portalPages(app: App): readonly PageResource[] {
  const pages = app.modules
    .flatMap(({ portal }) => portal?.pages ?? [])
    .flatMap((page) => {
      const routes = routesOf(app, page);
      return routes === null ? [] : [{ page, routes }];
    });
  const made = pages.map(({ page, routes }) => {
    const above = pages.find(({ page: other }) => other.name === page.below?.page);
    return page.below !== undefined && above === undefined ? null : new PageResource(page, routes, above?.routes);
  });
  const shown = made.filter((each) => each !== null);
  for (const each of shown) each.charted = shown;
  return shown;
}

/** What the site is made of: these pages, and those of the modules that are not lists. */
export function portalDeclarations(app: App, shown: readonly PageResource[]): readonly AdminDeclaration[] {
  return [
    { overview: (context) => firstSteps(shown, context) },
    { pages: [...textsOf(app, shown), referencePage] },
    ...shown.map((each): AdminDeclaration => ({
      resources: [each.resource()],
      overview: (context, range) => each.overview(context, range),
    })),
  ];
}

/** Pages that are not lists, beside those that they are about. */
function textsOf(app: App, shown: readonly PageResource[]): readonly AdminSectionsPage[] {
  const texts = app.modules.flatMap(({ portal }) => portal?.texts ?? []);
  const offered = texts.filter(({ beside }) => beside === undefined || shown.some(({ page }) => page.name === beside));
  return offered.map((text) => {
    const { beside: _, ...page } = text;
    return page;
  });
}
