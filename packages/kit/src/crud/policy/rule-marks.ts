import type { JsonSchema } from '../../http/schema.ts';
import type { Policy, ShownColumn } from './policy.ts';

/** Who sees a value that is made of these columns; undefined where everybody does. Several rules must all admit the caller. */
export function visibleToNames(columns: readonly (ShownColumn | undefined)[]): string | undefined {
  const names = new Set(columns.flatMap((column) => column?.rule?.visibleTo?.name ?? []));
  return names.size === 0 ? undefined : [...names].join(' & ');
}

/** Says in a JSON Schema who sees the value, where not everybody does. */
export function markVisible(schema: JsonSchema, ...columns: readonly (ShownColumn | undefined)[]): JsonSchema {
  const names = visibleToNames(columns);
  return names === undefined ? schema : { ...schema, 'x-visible-to': names };
}

/** The columns that a computed field reads: of the row, of related rows, and those that lead to them. */
export function requiredColumns(policy: Policy, requires: readonly string[]): (ShownColumn | undefined)[] {
  return requires.flatMap((path) => {
    const [first = '', second] = path.split('.');
    if (second === undefined) return [policy.shown.get(first)];
    const edge = policy.edge(first);
    return edge === undefined ? [] : [policy.shown.get(edge.column), edge.target.shown.get(second)];
  });
}

/** Says in the JSON Schema of a body who may send a member, where not everybody may. */
export function markWritable({ options }: Policy, json: JsonSchema): JsonSchema {
  const rules = (options.fields ?? {}) as Readonly<Record<string, { readonly writableBy?: { readonly name: string } } | undefined>>;
  const properties = Object.entries((json['properties'] ?? {}) as Readonly<Record<string, JsonSchema>>).map(([name, schema]) => {
    const writableBy = rules[name]?.writableBy;
    return [name, writableBy === undefined ? schema : { ...schema, 'x-writable-by': writableBy.name }] as const;
  });
  return { ...json, properties: Object.fromEntries(properties) };
}

/** The schema without the marks, at any depth: for a caller who is not told what others may see or send. */
export function withoutMarks(schema: JsonSchema): JsonSchema {
  return strip(schema) as JsonSchema;
}

function strip(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(strip);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).filter(([name]) => name !== 'x-visible-to' && name !== 'x-writable-by');
  return Object.fromEntries(members.map(([name, inner]) => [name, strip(inner)]));
}
