import type { AdminContext, AdminResource } from '../../app/admin/declaration.ts';
import type { AdminOverview } from '../../app/admin/sections.ts';
import type { AdminRange, AdminTone } from '../../app/admin/shapes.ts';
import type { AdminSite } from './admin-site.ts';
import { healthPart } from './health.ts';
import { keptAnswer } from './kept-answer.ts';
import type { AdminOverviewAnswer } from '../wire/wire.ts';

/** What every module shows for the range, counted at most every few seconds. */
export const overviewOf = keptAnswer(countOverview);

export async function countOverview(site: AdminSite, context: AdminContext, range: AdminRange): Promise<AdminOverviewAnswer> {
  const access = await site.kind.access?.(context);
  const shown = site.declarations.filter(({ resources = [], pages = [] }) =>
    [...resources, ...pages].every(({ name }) => access?.shows(name) !== false),
  );
  const parts = await Promise.all(shown.flatMap((each) => each.overview?.(context, range) ?? []));
  return {
    range,
    at: context.clock.now().toISOString(),
    parts: [...(site.kind.isForStaff ? [await healthPart(context, site.stoppedReads, parts)] : []), ...worstFirst(parts)],
  };
}

/** The numbers of the application's own records come first, after the health: each member of staff sees those of the rows that they see. */
export async function withOwnNumbers(
  site: AdminSite,
  context: AdminContext,
  range: AdminRange,
  mayRead: (resource: AdminResource) => boolean,
  answer: AdminOverviewAnswer,
): Promise<AdminOverviewAnswer> {
  const shown = [...site.resources].filter((resource) => resource.overview !== undefined && mayRead(resource));
  const own = await Promise.all(shown.flatMap((resource) => resource.overview?.(context, range) ?? []));
  const [health, ...rest] = answer.parts;
  return { ...answer, parts: [...(health === undefined ? [] : [health]), ...own, ...rest] };
}

const SEVERITY: Readonly<Record<AdminTone, number>> = { bad: 0, warning: 1, neutral: 2, info: 2, good: 2 };

/** What fails comes first: among the parts, and among the tiles of a part. The rest stays in its order. */
function worstFirst(parts: readonly AdminOverview[]): AdminOverview[] {
  const severity = ({ tiles }: AdminOverview) => Math.min(SEVERITY.good, ...tiles.map(({ tone }) => SEVERITY[tone]));
  return parts
    .map((part) => ({ ...part, tiles: part.tiles.toSorted((a, b) => SEVERITY[a.tone] - SEVERITY[b.tone]) }))
    .toSorted((a, b) => severity(a) - severity(b));
}
