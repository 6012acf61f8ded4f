import type { AdminFieldChange, AdminTimelineEntry } from '../../app/admin/sections.ts';

/**
 * One entry for each request: what it did to the record, with everything else that it did folded under it. The entries are in order, those of one request
 * together; `own` are about the record itself.
 */
export function byRequest(entries: readonly AdminTimelineEntry[], own: ReadonlySet<AdminTimelineEntry>): readonly AdminTimelineEntry[] {
  const groups = Map.groupBy(entries, (entry) => entry.request_id ?? entry);
  return [...groups.values()].map((group) => {
    const about = group.filter((entry) => own.has(entry));
    const [head] = about.length === 0 ? group : about;
    const heads = about.length === 0 ? [head as AdminTimelineEntry] : about;
    const folded = group.filter((entry) => !heads.includes(entry));
    return folded.length === 0 ? together(heads) : Object.assign({}, together(heads), { folded });
  });
}

/** Several changes of one record in one request, newest first, as one. */
function together(entries: readonly AdminTimelineEntry[]): AdminTimelineEntry {
  const [newest] = entries as readonly [AdminTimelineEntry];
  if (entries.length === 1) return newest;
  const titles = [...new Set(entries.map(({ title }) => title))].toReversed();
  const changes = entries.toReversed().flatMap((entry) => entry.changes ?? []);
  const joined = [...Map.groupBy(changes, ({ name }) => name).values()].map(joinedChange);
  return { ...newest, title: titles.join(', '), ...(joined.length === 0 ? {} : { changes: joined }) };
}

/** From the value before the first change to the value after the last. */
function joinedChange(changes: readonly AdminFieldChange[]): AdminFieldChange {
  const [first, last] = [changes[0], changes.at(-1)] as readonly [AdminFieldChange, AdminFieldChange];
  const { after: _, ...before } = first;
  return { ...before, ...('after' in last ? { after: last.after } : {}) };
}
