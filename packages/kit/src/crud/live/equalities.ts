import type { Where } from '../../db/sql/where/where.ts';
import type { Policy } from '../policy/policy.ts';
import { isPlainObject } from '../../options/value-rule.ts';

/** The columns that conditions fix to one value: every row that matches all of them has it. */
export function equalities(policy: Policy, conditions: readonly (Where | boolean)[]): ReadonlyMap<string, unknown> {
  const found = new Map<string, unknown>();
  for (const each of conditions) collect(policy, each, found);
  return found;
}

function collect(policy: Policy, where: unknown, found: Map<string, unknown>): void {
  if (!isPlainObject(where)) return;
  for (const [name, given] of Object.entries(where)) {
    if (name === 'and' && Array.isArray(given)) for (const each of given) collect(policy, each, found);
    if (!isExact(policy, name)) continue;
    const value: unknown = typeof given === 'object' && given !== null ? (given as { readonly eq?: unknown }).eq : given;
    if (['string', 'number', 'bigint', 'boolean'].includes(typeof value)) found.set(name, storedForm(policy, name, value));
  }
}

/** A UUID in capitals, as a client may write it, is stored in lower case: rows are found by what they have. */
function storedForm({ statements }: Policy, name: string, value: unknown): unknown {
  return statements.byName.get(name)?.definition.kind === 'uuid' ? String(value).toLowerCase() : value;
}

/** Kinds whose equal stored values have one text. */
function isExact({ statements }: Policy, name: string): boolean {
  const kind = statements.byName.get(name)?.definition.kind;
  return kind === 'uuid' || kind === 'text' || kind === 'enum' || kind === 'int' || kind === 'bigint' || kind === 'bool';
}

/** A column that every row of a list has one value in. */
export interface Bound {
  readonly column: string;
  readonly value: unknown;
}

/** The owner where the list has one, else a filter, else the tenant: the value that the fewest lists share. */
export function narrowest({ bounds: { owner, tenant } }: Policy, found: ReadonlyMap<string, unknown>): Bound | undefined {
  const names = [...found.keys()];
  const column = names.find((name) => name === owner) ?? names.find((name) => name !== tenant) ?? names[0];
  return column === undefined ? undefined : { column, value: found.get(column) };
}
