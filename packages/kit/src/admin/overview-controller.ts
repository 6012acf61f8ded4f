import type { LoginProvider } from '../app/login-provider.ts';
import { Controller } from '../http/controller.ts';
import { jsonSchema } from '../http/json-schema.ts';
import { route } from '../http/route.ts';
import { isStaff } from '../permissions/built-ins.ts';
import type { AdminSite } from './admin-site.ts';
import { overviewOf } from './overview.ts';
import { RangeQuery, readRange } from './read-range.ts';
import type { AdminOverviewAnswer } from './wire.ts';

const Overview = jsonSchema<AdminOverviewAnswer>({});

/** What every module shows at a glance. */
export function overviewController(site: AdminSite, { authenticators }: LoginProvider): Controller {
  const facts = { permission: isStaff, auth: authenticators, hidden: true, metadata: { admin: true } } as const;

  class KitAdminOverviewController extends Controller {
    overview = route.get('/', { ...facts, query: RangeQuery, response: Overview }, (context) =>
      overviewOf(site, site.context(context, context.principal), readRange(context.query) ?? '24h'),
    );
  }
  return new KitAdminOverviewController();
}
