export type Json = Readonly<Record<string, unknown>>;

/** Keywords whose content is data and not a schema. */
const DATA: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples']);
/** Keywords whose content is schemas by name: a key there is not a keyword, also when it is called like one. */
const NAMED: ReadonlySet<string> = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas', 'dependencies']);
/** What nests deeper stays as it is, so that a schema cannot exhaust the stack. */
const DEPTH_MAX = 500;
/** Of a schema without an id; references are resolved against it. */
const NO_ID = 'https://schema.invalid/';

/**
 * A schema as a part of a document, at `place`, such as `#/$defs/Variant1`. References into the schema, by pointer, by anchor or by id,
 * become pointers from the root of the document. Ids and anchors are left out: two versions of a schema have the same.
 */
export function withLocalReferences(schema: unknown, place: string): unknown {
  const targets = new Map<string, string>();
  collect(schema, place, NO_ID, targets, 0);
  return rewrite(schema, NO_ID, targets, 0);
}

/** Where every id and anchor leads. */
function collect(schema: unknown, place: string, base: string, targets: Map<string, string>, depth: number): void {
  if (!isObject(schema) || depth > DEPTH_MAX) return;
  const id = idOf(schema);
  const uri = baseOf(id, base);
  if (depth === 0) targets.set(base, place);
  if (uri !== base) targets.set(uri, place);
  const anchor = typeof schema['$anchor'] === 'string' ? schema['$anchor'] : id?.startsWith('#') ? id.slice(1) : undefined;
  if (anchor !== undefined) targets.set(`${uri}#${anchor}`, place);
  for (const [child, path] of children(schema)) collect(child, place + path, uri, targets, depth + 1);
}

function rewrite(schema: unknown, base: string, targets: ReadonlyMap<string, string>, depth: number): unknown {
  if (Array.isArray(schema)) return schema.map((item) => rewrite(item, base, targets, depth + 1));
  if (!isObject(schema) || depth > DEPTH_MAX) return schema;
  const uri = baseOf(idOf(schema), base);
  const entries = Object.entries(schema).flatMap(([key, value]): [string, unknown][] => {
    if (key === '$anchor' || ((key === '$id' || key === 'id') && typeof value === 'string')) return [];
    if (key === '$ref' && typeof value === 'string') return [[key, local(value, uri, targets)]];
    if (DATA.has(key)) return [[key, value]];
    if (!NAMED.has(key) || !isObject(value)) return [[key, rewrite(value, uri, targets, depth + 1)]];
    return [[key, Object.fromEntries(Object.entries(value).map(([name, each]) => [name, rewrite(each, uri, targets, depth + 1)]))]];
  });
  return Object.fromEntries(entries);
}

/** The subschemas of a schema and the pointers to them. */
function children(schema: Json): [schema: unknown, path: string][] {
  return Object.entries(schema).flatMap(([key, value]): [unknown, string][] => {
    const path = `/${escaped(key)}`;
    if (DATA.has(key)) return [];
    if (Array.isArray(value)) return value.map((item, index) => [item, `${path}/${index}`]);
    if (NAMED.has(key) && isObject(value)) return Object.entries(value).map(([name, each]) => [each, `${path}/${escaped(name)}`]);
    return [[value, path]];
  });
}

/** A reference as a pointer, where it leads into the schema. A reference to another document stays. */
function local(ref: string, base: string, targets: ReadonlyMap<string, string>): string {
  const hash = ref.indexOf('#');
  const [document, fragment] = hash === -1 ? [ref, ''] : [ref.slice(0, hash), ref.slice(hash + 1)];
  const uri = resolved(document, base);
  if (fragment !== '' && !fragment.startsWith('/')) return targets.get(`${uri}#${fragment}`) ?? ref;
  const place = targets.get(uri);
  return place === undefined ? ref : place + fragment;
}

/** The id of a schema: `id` in draft 4, `$id` later. */
function idOf(schema: Json): string | undefined {
  const id = schema['$id'] ?? schema['id'];
  return typeof id === 'string' ? id : undefined;
}

function baseOf(id: string | undefined, base: string): string {
  return id === undefined || id.startsWith('#') ? base : resolved(id.replace(/#$/, ''), base);
}

function resolved(uri: string, base: string): string {
  return uri === '' ? base : URL.canParse(uri, base) ? new URL(uri, base).href : uri;
}

function escaped(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
