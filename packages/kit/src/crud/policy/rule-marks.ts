import type { JsonSchema } from '../../http/declare/schema.ts';
import type { Policy } from './policy.ts';
import type { ViewField } from './view.ts';

/** Who sees a field, as a text; undefined where everybody does. Several rules must all admit the caller. */
export function visibleToNames(field: ViewField | undefined): string | undefined {
  if (field === undefined) return undefined;
  const permissions = field.kind === 'computed' ? field.visibleTo : field.rule?.visibleTo === undefined ? [] : [field.rule.visibleTo];
  return permissions.length === 0 ? undefined : [...new Set(permissions.map(({ name }) => name))].join(' & ');
}

/** Says in a JSON Schema who sees the value, where not everybody does. */
export function markVisible(schema: JsonSchema, field: ViewField | undefined): JsonSchema {
  const names = visibleToNames(field);
  return names === undefined ? schema : { ...schema, 'x-visible-to': names };
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
