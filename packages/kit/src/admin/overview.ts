import type { AdminContext } from '../app/admin-declaration.ts';
import type { AdminRange } from '../app/admin-shapes.ts';
import type { AdminSite } from './admin-site.ts';
import type { AdminOverviewAnswer } from './wire.ts';

/** Several people watching cost as much as one. */
const KEPT_MS = 5_000;

interface Kept {
  readonly at: number;
  readonly answer: Promise<AdminOverviewAnswer>;
}

const kept = new WeakMap<AdminSite, Map<AdminRange, Kept>>();

/** What every module shows for the range, counted at most every few seconds. */
export function overviewOf(site: AdminSite, context: AdminContext, range: AdminRange): Promise<AdminOverviewAnswer> {
  const ranges = kept.get(site) ?? new Map<AdminRange, Kept>();
  kept.set(site, ranges);
  const at = context.clock.now().getTime();
  const known = ranges.get(range);
  if (known !== undefined && at >= known.at && at - known.at < KEPT_MS) return known.answer;
  const answer = count(site, context, range);
  ranges.set(range, { at, answer });
  // A failure is nobody's answer but the asker's.
  answer.catch(() => ranges.delete(range));
  return answer;
}

async function count(site: AdminSite, context: AdminContext, range: AdminRange): Promise<AdminOverviewAnswer> {
  const parts = await Promise.all(site.declarations.flatMap((each) => each.overview?.(context, range) ?? []));
  return { range, at: context.clock.now().toISOString(), parts };
}
