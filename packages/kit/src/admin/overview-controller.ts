import { chosenRange } from '../app/admin/range.ts';
import type { AdminRange } from '../app/admin/shapes.ts';
import { Controller } from '../http/controller.ts';
import { jsonSchema } from '../http/json-schema.ts';
import { route } from '../http/route.ts';
import { isStaff } from '../permissions/built-ins.ts';
import { coreErrors } from '../errors/core-errors.ts';
import type { AdminSite } from './admin-site.ts';
import { overviewOf } from './overview.ts';
import { isMoment } from './read-list-query.ts';
import type { AdminOverviewAnswer } from './wire.ts';

const OverviewQuery = jsonSchema<{ range?: AdminRange }>({
  type: 'object',
  properties: { range: { type: 'string', maxLength: 80 } },
  additionalProperties: false,
});
const USUAL: ReadonlySet<string> = new Set(['1h', '24h', '7d', '30d']);
const Overview = jsonSchema<AdminOverviewAnswer>({});

const RANGE_FAULT = {
  location: ['query', 'range'],
  code: 'invalid',
  message: 'Give 1h, 24h, 7d, 30d, or two times as in 2026-01-31T12:00:00Z/2026-01-31T18:00:00Z, 10 seconds to 400 days apart.',
};

function isChosen(range: string): boolean {
  return range.split('/').every(isMoment) && chosenRange(range) !== null;
}

/** What every module shows at a glance. */
export function overviewController(site: AdminSite): Controller {
  const facts = { permission: isStaff, auth: ['session'], hidden: true, metadata: { admin: true } } as const;

  class KitAdminOverviewController extends Controller {
    overview = route.get('/', { ...facts, query: OverviewQuery, response: Overview }, (context) => {
      const { range = '24h' } = context.query;
      if (!USUAL.has(range) && !isChosen(range)) throw coreErrors.validation_error({ errors: [RANGE_FAULT] });
      return overviewOf(site, site.context(context, context.principal), range);
    });
  }
  return new KitAdminOverviewController();
}
