import type { AdminContext } from '../app/admin/declaration.ts';
import type { AdminOverview, AdminRange, AdminTone } from '../app/admin/shapes.ts';
import type { AdminSite } from './admin-site.ts';
import type { AdminOverviewAnswer } from './wire.ts';

/** Several people watching cost as much as one. */
const KEPT_MS = 5_000;
/** Ranges that people chose are many; the ones asked for last are kept. */
const RANGES_MAX = 16;

interface Kept {
  /** Null while it is being counted: requests that come meanwhile wait for the same answer, however long it takes. */
  at: number | null;
  readonly answer: Promise<AdminOverviewAnswer>;
}

const kept = new WeakMap<AdminSite, Map<AdminRange, Kept>>();

/** What every module shows for the range, counted at most every few seconds. */
export function overviewOf(site: AdminSite, context: AdminContext, range: AdminRange): Promise<AdminOverviewAnswer> {
  const ranges = kept.get(site) ?? new Map<AdminRange, Kept>();
  kept.set(site, ranges);
  const now = context.clock.now().getTime();
  const known = ranges.get(range);
  if (known !== undefined && (known.at === null || (now >= known.at && now - known.at < KEPT_MS))) return known.answer;
  const counting: Kept = { at: null, answer: count(site, context, range) };
  ranges.delete(range);
  ranges.set(range, counting);
  const [oldest] = ranges.keys();
  if (ranges.size > RANGES_MAX && oldest !== undefined) ranges.delete(oldest);
  counting.answer.then(
    () => (counting.at = context.clock.now().getTime()),
    // A failure is the answer for the requests that waited for it, and not kept for later ones.
    () => ranges.get(range) === counting && ranges.delete(range),
  );
  return counting.answer;
}

async function count(site: AdminSite, context: AdminContext, range: AdminRange): Promise<AdminOverviewAnswer> {
  const parts = await Promise.all(site.declarations.flatMap((each) => each.overview?.(context, range) ?? []));
  return { range, at: context.clock.now().toISOString(), parts: worstFirst(parts) };
}

const SEVERITY: Readonly<Record<AdminTone, number>> = { bad: 0, warning: 1, neutral: 2, info: 2, good: 2 };

/** What fails comes first: among the parts, and among the tiles of a part. The rest stays in its order. */
function worstFirst(parts: readonly AdminOverview[]): AdminOverview[] {
  const severity = ({ tiles }: AdminOverview) => Math.min(SEVERITY.good, ...tiles.map(({ tone }) => SEVERITY[tone]));
  return parts
    .map((part) => ({ ...part, tiles: part.tiles.toSorted((a, b) => SEVERITY[a.tone] - SEVERITY[b.tone]) }))
    .toSorted((a, b) => severity(a) - severity(b));
}
