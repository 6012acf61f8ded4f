import { isMembers } from '../../../options/value-rule.ts';
import { canonicalJson } from '../../../db/values/canonical-json.ts';

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
  return isMembers(state) ? state : {};
}

/** As `changesOf`, with the members of objects inside as fields of their own: `address.city`. */
export function fieldChanges(before: unknown, after: unknown, prefix = ''): readonly Change[] {
  return changesOf(before, after).flatMap(({ name, before: was, after: is }) => {
    const path = `${prefix}${name}`;
    return isMembers(was) && isMembers(is) ? fieldChanges(was, is, `${path}.`) : [{ name: path, before: was, after: is }];
  });
}
