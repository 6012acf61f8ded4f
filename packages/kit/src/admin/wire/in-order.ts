import type { AdminTimelineEntry } from '../../app/admin/sections.ts';

/** A change and its effects are written in one transaction, in whichever order: of times this close together the change is the first. */
const TOGETHER_MS = 1_000;

/**
 * A timeline, newest first. Entries of one request stand together, at the time of the newest, and its changes before their effects; a record is listed
 * once, however many ways lead to it.
 */
export function inOrder(entries: readonly AdminTimelineEntry[], changes: ReadonlySet<AdminTimelineEntry>): readonly AdminTimelineEntry[] {
  const once = new Map(
    entries.map((entry, index) => [entry.link === undefined ? index : `${entry.link.resource} ${entry.link.id}`, entry]),
  );
  const groups = Map.groupBy([...once.values()], (entry) => entry.request_id ?? entry);
  return [...groups.values()]
    .map((group) => newestFirst(group, changes))
    .toSorted((a, b) => Math.max(...b.map(timeOf)) - Math.max(...a.map(timeOf)))
    .flat();
}

function newestFirst(group: readonly AdminTimelineEntry[], changes: ReadonlySet<AdminTimelineEntry>): readonly AdminTimelineEntry[] {
  const changed = Math.max(...group.filter((entry) => changes.has(entry)).map(timeOf));
  const placed = (entry: AdminTimelineEntry): number => {
    const at = timeOf(entry);
    return !changes.has(entry) && changed - at <= TOGETHER_MS ? Math.max(at, changed) : at;
  };
  return group.toSorted((a, b) => placed(b) - placed(a) || Number(changes.has(a)) - Number(changes.has(b)));
}

function timeOf({ at }: AdminTimelineEntry): number {
  return Date.parse(at ?? '');
}
