import { isTable, memberOf, type Table, type Value } from '../document/value.ts';

/** The part of JSON Schema that a document tells about itself: types and keys, never values. */
export interface InferredSchema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, InferredSchema>>;
  readonly required?: readonly string[];
  readonly items?: InferredSchema;
}

/** The schema that all of these documents satisfy. A key is required when every document has it. */
export function inferSchema(documents: readonly Table[]): InferredSchema {
  return common(documents);
}

function common(values: readonly Value[]): InferredSchema {
  const types = [...new Set(values.map(typeOf))].sort();
  // An integer is a number: a key that has both is one.
  const distinct = types.includes('number') ? types.filter((type) => type !== 'integer') : types;
  const arrays = values.filter((value) => Array.isArray(value));
  const tables = values.filter((value) => isTable(value));
  const items = arrays.flat();
  return {
    ...(distinct.length === 0 ? {} : { type: distinct.length === 1 ? distinct[0]! : distinct }),
    ...(tables.length === 0 ? {} : objectOf(tables)),
    ...(items.length === 0 ? {} : { items: common(items) }),
  };
}

function objectOf(tables: readonly Table[]): Pick<InferredSchema, 'properties' | 'required'> {
  const keys = [...new Set(tables.flatMap((table) => Object.keys(table)))];
  const properties = Object.create(null) as Record<string, InferredSchema>;
  for (const key of keys) properties[key] = common(tables.map((table) => memberOf(table, key)).filter((value) => value !== undefined));
  const required = keys.filter((key) => tables.every((table) => Object.hasOwn(table, key)));
  return { properties, ...(required.length === 0 ? {} : { required }) };
}

function typeOf(value: Value): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value === 'object' ? 'object' : typeof value;
}
