import type { AdminRange } from '../app/admin/shapes.ts';
import { Controller } from '../http/controller.ts';
import { jsonSchema } from '../http/json-schema.ts';
import { route } from '../http/route.ts';
import { isStaff } from '../permissions/built-ins.ts';
import type { AdminSite } from './admin-site.ts';
import { overviewOf } from './overview.ts';
import type { AdminOverviewAnswer } from './wire.ts';

const OverviewQuery = jsonSchema<{ range?: AdminRange }>({
  type: 'object',
  properties: { range: { type: 'string', enum: ['1h', '24h', '7d', '30d'] } },
  additionalProperties: false,
});
const Overview = jsonSchema<AdminOverviewAnswer>({});

/** What every module shows at a glance. */
export function overviewController(site: AdminSite): Controller {
  const facts = { permission: isStaff, auth: ['session'], hidden: true, metadata: { admin: true } } as const;

  class KitAdminOverviewController extends Controller {
    overview = route.get('/', { ...facts, query: OverviewQuery, response: Overview }, (context) =>
      overviewOf(site, site.context(context, context.principal), context.query.range ?? '24h'),
    );
  }
  return new KitAdminOverviewController();
}
