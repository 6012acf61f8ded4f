import type { Principal } from '../../auth/people/principal.ts';
import type { AdminResource } from '../../app/admin/declaration.ts';
import type { LoginProvider } from '../../app/declare/login-provider.ts';
import { Controller } from '../../http/compile/controller.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import { raw } from '../../http/declare/raw.ts';
import { route } from '../../http/declare/route.ts';
import type { AdminSite } from '../state/admin-site.ts';
import { namedFor, siteFacts } from '../state/site-kind.ts';
import { refusalOf, roleOf } from '../staff/staff-roles.ts';
import { countOverview, overviewOf, withOwnNumbers } from '../state/overview.ts';
import { overviewFile } from '../wire/overview-file.ts';
import { RangeQuery, readRange } from '../wire/read-range.ts';
import { stateOf } from '../state/state.ts';
import type { AdminOverviewAnswer, AdminSiteState } from '../wire/wire.ts';

const Overview = jsonSchema<AdminOverviewAnswer>({});
const State = jsonSchema<AdminSiteState>({});

type Asked = Parameters<AdminSite['context']>[0] & { readonly principal: Principal };

/** What every module shows at a glance. */
export function overviewController(site: AdminSite, login: LoginProvider): Controller {
  const facts = siteFacts(site.kind, login.authenticators);
  const answer = async (context: Asked, query: Parameters<typeof readRange>[0]): Promise<AdminOverviewAnswer> => {
    const asked = site.context(context, context.principal);
    const range = readRange(query) ?? '24h';
    // What staff see is the same for all of them and is kept; what a caller of the portal sees is for this caller alone.
    if (!site.kind.isForStaff) return countOverview(site, asked, range);
    const role = await roleOf(site.settings, context.principal.user);
    const mayRead = (resource: AdminResource): boolean => refusalOf(site.settings, role, resource, 'read') === null;
    return withOwnNumbers(site, asked, range, mayRead, await overviewOf(site, asked, range));
  };

  class KitSiteOverviewController extends Controller {
    overview = route.get('/', { ...facts, query: RangeQuery, response: Overview }, (context) => answer(context, context.query));

    export = route.get('/export', { ...facts, query: RangeQuery, response: raw('text/csv') }, async (context) => {
      const { parts } = await answer(context, context.query);
      context.reply.header('content-disposition', 'attachment; filename="overview.csv"');
      return overviewFile(parts);
    });
  }
  return new (namedFor(site.kind, KitSiteOverviewController))();
}

/** What the bar on every page shows. */
export function stateController(site: AdminSite, login: LoginProvider): Controller {
  const facts = siteFacts(site.kind, login.authenticators);

  class KitSiteStateController extends Controller {
    state = route.get('/', { ...facts, response: State }, async (context) =>
      // The state of servers and workers is not for customers.
      site.kind.isForStaff
        ? stateOf(site, site.context(context, context.principal), 'state')
        : { at: context.clock.now().toISOString(), parts: [] },
    );
  }
  return new (namedFor(site.kind, KitSiteStateController))();
}
