import { canonicalJson } from '../../db/canonical-json.ts';

export interface Change {
  readonly name: string;
  readonly before: unknown;
  readonly after: unknown;
}

/** The members in which two states differ, sorted by name. A missing member is undefined. */
export function changesOf(before: unknown, after: unknown): readonly Change[] {
  const [was, is] = [membersOf(before), membersOf(after)];
  return [...new Set([...Object.keys(was), ...Object.keys(is)])]
    .sort()
    .map((name) => ({ name, before: was[name], after: is[name] }))
    .filter((change) => canonicalJson(change.before ?? null) !== canonicalJson(change.after ?? null));
}

function membersOf(state: unknown): Readonly<Record<string, unknown>> {
  return typeof state === 'object' && state !== null && !Array.isArray(state) ? (state as Record<string, unknown>) : {};
}
