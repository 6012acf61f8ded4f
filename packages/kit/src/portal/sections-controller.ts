import type { LoginProvider } from '../app/declare/login-provider.ts';
import { coreErrors } from '../errors/core-errors.ts';
import { Controller } from '../http/compile/controller.ts';
import { jsonSchema } from '../http/declare/json-schema.ts';
import { route } from '../http/declare/route.ts';
import type { AdminSite } from '../admin/state/admin-site.ts';
import { siteFacts } from '../admin/state/site-kind.ts';
import type { AdminSectionsAnswer } from '../admin/wire/wire.ts';

const PageName = jsonSchema<{ page: string }>({
  type: 'object',
  properties: { page: { type: 'string', minLength: 1, maxLength: 200 } },
  required: ['page'],
  additionalProperties: false,
});
const Sections = jsonSchema<AdminSectionsAnswer>({});

/** Pages that are not lists, as this caller sees them. */
export function sectionsController(site: AdminSite, login: LoginProvider): Controller {
  const facts = siteFacts(site.kind, login.authenticators);

  class KitPortalSectionsController extends Controller {
    page = route.get('/:page', { ...facts, params: PageName, response: Sections }, async (context) => {
      const page = site.pages.find(({ name, href }) => name === context.params.page && href === undefined);
      if (page === undefined) throw coreErrors.not_found();
      return { sections: await page.read(site.context(context, context.principal)) };
    });
  }
  return new KitPortalSectionsController();
}
