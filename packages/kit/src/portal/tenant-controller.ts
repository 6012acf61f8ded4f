import type { LoginProvider } from '../app/declare/login-provider.ts';
import type { App } from '../app/declare/module.ts';
import type { PortalTenants } from '../app/admin/portal-page.ts';
import type { AdminSite } from '../admin/state/admin-site.ts';
import { siteFacts } from '../admin/state/site-kind.ts';
import type { PortalTenantChoice } from '../admin/wire/wire.ts';
import { coreErrors } from '../errors/core-errors.ts';
import { Controller } from '../http/compile/controller.ts';
import { jsonSchema } from '../http/declare/json-schema.ts';
import { route } from '../http/declare/route.ts';
import type { CompiledRoute } from '../http/exchange/compiled-route.ts';
import { callOperation, jsonOf, unlessRefused } from './call.ts';
import { routesOf } from './page-routes.ts';

const TenantId = jsonSchema<{ id: string }>({
  type: 'object',
  properties: { id: { type: 'string', minLength: 1, maxLength: 255 } },
  required: ['id'],
  additionalProperties: false,
});
const Choice = jsonSchema<PortalTenantChoice>({});

/** More than that nobody looks through. */
const TENANTS_MAX = '100';

interface TenantRoutes {
  readonly list: CompiledRoute;
  readonly choose: CompiledRoute;
  /** The parameter of the path of `choose`. */
  readonly key: string;
  readonly words: PortalTenants;
}

/** In which tenant somebody works who is a member of several: the operations of the API list and choose it. A session of a link is in one, and stays there. */
export function tenantController(site: AdminSite, login: LoginProvider): Controller {
  const facts = siteFacts(site.kind, login.authenticators);

  class KitPortalTenantController extends Controller {
    list = route.get('/', { ...facts, response: Choice }, async (context): Promise<PortalTenantChoice> => {
      const routes = site.kind.isByLink?.(context.principal) === true ? null : tenantRoutes(site.app);
      if (routes === null) return { current: null, items: [] };
      const asked = site.context(context, context.principal);
      const { list, words } = routes;
      const answer = await unlessRefused(() => callOperation(list, asked, { query: { limit: TENANTS_MAX } }));
      const found = answer === null ? [] : (jsonOf(answer)['items'] as readonly Readonly<Record<string, unknown>>[]);
      return {
        // Of one that is suspended, or that was left, the pages say so: this is no place for an error.
        current: await unlessRefused(() => asked.tenant()),
        items: found.map((item) => ({ id: String(item['id']), title: String(item[words.title]) })),
      };
    });

    choose = route.post('/:id/choose', { ...facts, params: TenantId }, async (context) => {
      const routes = tenantRoutes(site.app);
      if (routes === null) throw coreErrors.not_found();
      const asked = site.context(context, context.principal);
      await callOperation(routes.choose, asked, { params: { [routes.key]: context.params.id } });
    });
  }
  return new KitPortalTenantController();
}

/** Null where the app has not mounted them, or its logins have no tenant. */
function tenantRoutes(app: App): TenantRoutes | null {
  const words = app.modules.map(({ portal }) => portal?.tenants).find((each) => each !== undefined);
  const routes = words === undefined || app.registry.sessionTenants === null ? null : routesOf(app, words);
  const choose = routes?.actions.get(words?.choose ?? '');
  const key = routes?.keys.at(-1);
  if (words === undefined || routes === null || choose === undefined || key === undefined) return null;
  return { list: routes.list, choose, key, words };
}
