import type { LoginProvider } from '../../app/declare/login-provider.ts';
import { Controller } from '../../http/compile/controller.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import { route } from '../../http/declare/route.ts';
import { isStaff } from '../../permissions/built-ins.ts';
import type { AdminSite } from '../state/admin-site.ts';
import { overviewOf } from '../state/overview.ts';
import { RangeQuery, readRange } from '../wire/read-range.ts';
import { stateOf } from '../state/state.ts';
import type { AdminOverviewAnswer, AdminSiteState } from '../wire/wire.ts';

const Overview = jsonSchema<AdminOverviewAnswer>({});
const State = jsonSchema<AdminSiteState>({});

function factsOf({ authenticators }: LoginProvider) {
  return { permission: isStaff, auth: authenticators, hidden: true, metadata: { admin: true } } as const;
}

/** What every module shows at a glance. */
export function overviewController(site: AdminSite, login: LoginProvider): Controller {
  const facts = factsOf(login);

  class KitAdminOverviewController extends Controller {
    overview = route.get('/', { ...facts, query: RangeQuery, response: Overview }, (context) =>
      overviewOf(site, site.context(context, context.principal), readRange(context.query) ?? '24h'),
    );
  }
  return new KitAdminOverviewController();
}

/** What the bar on every page shows. */
export function stateController(site: AdminSite, login: LoginProvider): Controller {
  const facts = factsOf(login);

  class KitAdminStateController extends Controller {
    state = route.get('/', { ...facts, response: State }, (context) => stateOf(site, site.context(context, context.principal), 'state'));
  }
  return new KitAdminStateController();
}
