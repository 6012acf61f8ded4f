// What the site shows of an entry: the names that its records have today, and the values that this staff member may see.
import type { AdminContext, AdminSight, AdminTarget as Target } from '../../../app/admin/declaration.ts';
import type { AdminFieldChange } from '../../../app/admin/sections.ts';
import type { AdminValue } from '../../../app/admin/shapes.ts';
import type { Change } from './changes.ts';
import type { StoredEntry } from '../chain/store.ts';

export type Names = ReadonlyMap<string, string>;

export const nameKey = ({ type, id }: Target): string => `${type} ${id}`;
export const targetOf = ({ target_type: type, target_id: id }: StoredEntry): Target => ({ type, id });

/** What the targets are called today: one statement per kind. */
export async function namesFor({ titlesOf }: AdminContext, targets: readonly Target[]): Promise<Names> {
  const names = new Map<string, string>();
  for (const [type, some] of Map.groupBy(targets, (target) => target.type)) {
    const ids = some.map(({ id }) => id);
    for (const [id, title] of await titlesOf(type, ids)) names.set(nameKey({ type, id }), title);
  }
  return names;
}

/** By kind: the records, and their fields, that this staff member may see. Null: all of them. */
export type Sights = ReadonlyMap<string, AdminSight | null>;

export async function sightsOf({ sightOf }: AdminContext, targets: readonly Target[]): Promise<Sights> {
  const sights = new Map<string, AdminSight | null>();
  for (const [type, some] of Map.groupBy(targets, (target) => target.type)) {
    const ids = some.map(({ id }) => id);
    sights.set(type, await sightOf(type, ids));
  }
  return sights;
}

/** This staff member may see the record: the values in its entry are shown. */
export function isSeen({ target_type, target_id }: StoredEntry, sights: Sights): boolean {
  return sights.get(target_type)?.ids.has(target_id) ?? true;
}

export function shownChanges(changes: readonly Change[], entry: StoredEntry, sights: Sights): readonly Change[] {
  const sight = sights.get(entry.target_type) ?? null;
  if (!isSeen(entry, sights)) return [];
  // A change inside a JSON column is a field of its own: `address.city`.
  return sight === null ? changes : changes.filter(({ name }) => sight.shows(name) && sight.shows(name.split('.')[0] as string));
}

/** The ids of other records among the changed values, by the name of their field. */
export function referencesIn({ refersTo }: AdminContext, { target_type }: StoredEntry, changes: readonly Change[]): Map<string, Target[]> {
  return new Map(
    changes.flatMap(({ name, before, after }): [string, Target[]][] => {
      const type = refersTo(target_type, name);
      const ids = [before, after].filter((value) => typeof value === 'string' && value !== '');
      return type === null || ids.length === 0 ? [] : [[name, ids.map((id) => ({ type, id: id as string }))]];
    }),
  );
}

export interface Difference {
  readonly changes: readonly Change[];
  readonly references: ReadonlyMap<string, readonly Target[]>;
  readonly names: Names;
}

export function changeRows({ linkTo }: AdminContext, { changes, references, names }: Difference): AdminFieldChange[] {
  return changes.map(({ name, before, after }) => {
    const [reference] = references.get(name) ?? [];
    const shown = (value: unknown): AdminValue | undefined => {
      if (value === undefined || value === null) return undefined;
      if (typeof value === 'string' && reference !== undefined) {
        const text = names.get(nameKey({ type: reference.type, id: value })) ?? value;
        return linkTo(reference.type, value, text) ?? text;
      }
      if (Array.isArray(value)) return value.map((item) => (typeof item === 'string' ? item : JSON.stringify(item)));
      return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : JSON.stringify(value);
    };
    return Object.assign({ name }, given('before', shown(before)), given('after', shown(after)));
  });
}

export function given(name: 'before' | 'after', value: AdminValue | undefined): Partial<AdminFieldChange> {
  return value === undefined ? {} : { [name]: value };
}

/** The name of the record today, else the one in the entry, if this staff member may see it. */
export function nameOf(entry: StoredEntry, names: Names, sights: Sights): string {
  if (!isSeen(entry, sights)) return entry.target_id;
  return names.get(nameKey(targetOf(entry))) ?? storedName(entry, sights);
}

function storedName({ before, after, target_id, target_type }: StoredEntry, sights: Sights): string {
  for (const state of [after, before] as readonly unknown[]) {
    if (typeof state !== 'object' || state === null) continue;
    for (const name of ['name', 'username', 'title', 'url']) {
      const value = (state as Readonly<Record<string, unknown>>)[name];
      if (typeof value === 'string' && value !== '' && (sights.get(target_type)?.shows(name) ?? true)) return value;
    }
  }
  return target_id;
}
