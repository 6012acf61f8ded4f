import type { Model } from '../declare/model.ts';

/** A foreign key that the database keeps. */
export interface Reference {
  readonly child: Model;
  readonly column: string;
  readonly parent: Model;
  /** The column of the other table. */
  readonly key: string;
  /** The row stays when the other one goes: the column becomes NULL. */
  readonly isNulled: boolean;
}

/** Those that lead to rows of a table, however many tables are between. */
export function referencesUpTo(model: Model, models: readonly Model[]): Reference[] {
  const to = Map.groupBy(referencesOf(models), ({ parent }) => parent);
  const found: Reference[] = [];
  const known = new Set([model]);
  for (const parent of known)
    for (const reference of to.get(parent) ?? []) {
      found.push(reference);
      if (!reference.isNulled) known.add(reference.child);
    }
  return found;
}

function referencesOf(models: readonly Model[]): Reference[] {
  const byName = new Map(models.map((model) => [model.name, model]));
  return models.flatMap((child) =>
    Object.entries(child.columns).flatMap(([column, { settings }]) => {
      const { reference } = settings;
      if (reference === undefined || reference.isConstrained === false) return [];
      const parent = byName.get(typeof reference.target === 'string' ? reference.target : reference.target().name);
      if (parent === undefined) return [];
      const key = reference.column ?? parent.primaryKey[0] ?? '';
      return [{ child, column, parent, key, isNulled: reference.onDelete === 'set null' }];
    }),
  );
}
