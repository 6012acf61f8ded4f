import type { JsonSchema } from '../../http/declare/schema.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- a document that this package made
type Json = any;

/** A row whose members a request chooses by `fields` and `expand`. */
export interface ClientRow {
  readonly schema: string;
  /** Members that only `expand` shows. */
  readonly relations: readonly string[];
  /** Paths of `expand`: `items`, `items.product`. */
  readonly expand: readonly string[];
  /** Paths of `fields`: `id`, `items.quantity`. */
  readonly fields: readonly string[];
  readonly isPage: boolean;
  /** Whether `fields` and `expand` are in the body instead of the query string. */
  readonly isInBody: boolean;
}

interface RowRequest {
  readonly isPage: boolean;
  readonly query: readonly { readonly name: string; readonly isJoined: boolean; readonly schema: JsonSchema }[];
  readonly body: JsonSchema | undefined;
  /** Parameters of the list beside a read with a body. */
  readonly listed: readonly Json[];
}

/** Where `fields` or `expand` can be given, the result is narrowed by what was asked for. */
export function rowOf(
  schema: JsonSchema | undefined,
  { isPage, query, body, listed }: RowRequest,
  resolve: (value: Json) => Json,
): ClientRow | undefined {
  const reference = schema?.['$ref'];
  if (typeof reference !== 'string') return undefined;
  const isInQuery = query.some(({ name, isJoined }) => isJoined && isShape(name));
  const isInBody = !isInQuery && isPage && Object.keys(resolve(body)?.properties ?? {}).some(isShape);
  if (!isInQuery && !isInBody) return undefined;
  const { properties = {}, required = [] } = wholeSchema(schema, resolve);
  const parameters: readonly Json[] = isInBody ? listed : query;
  const given: string[] = parameters.find(({ name }) => name === 'expand')?.schema?.items?.enum ?? [];
  const expand = [...new Set(given)];
  const first = [...new Set(expand.map((path) => path.split('.')[0]!))];
  const relations = first.filter((name) => name in properties && !(required as string[]).includes(name));
  const below = expand.flatMap((path) =>
    Object.keys(objectAt(schema, path.split('.'), resolve)?.properties ?? {}).map((name) => `${path}.${name}`),
  );
  return {
    schema: reference.split('/').at(-1)!,
    relations,
    expand,
    fields: [...new Set([...Object.keys(properties), ...below])],
    isPage,
    isInBody,
  };
}

/** The body of a read, with the names that its `fields` and `expand` can have. */
export function typedBody(
  schema: JsonSchema | undefined,
  row: ClientRow | undefined,
  resolve: (value: Json) => Json,
): JsonSchema | undefined {
  if (schema === undefined || row?.isInBody !== true) return schema;
  const json = resolve(schema);
  const { fields, expand, ...others } = json.properties;
  const listOf = (names: readonly string[]) => ({ type: 'array', items: { enum: names } });
  return {
    ...json,
    properties: {
      ...others,
      ...(fields === undefined ? {} : { fields: listOf(row.fields) }),
      ...(expand === undefined || row.expand.length === 0 ? {} : { expand: listOf(row.expand) }),
    },
  };
}

export const isShape = (name: string): boolean => name === 'fields' || name === 'expand';

/** A schema with the properties of the schemas that it extends: an issued key is `allOf` the key and its secret. */
export function wholeSchema(schema: Json, resolve: (value: Json) => Json): Json {
  const json = resolve(schema);
  if (!Array.isArray(json?.allOf)) return json;
  const parts: Json[] = [...json.allOf.map((each: Json) => wholeSchema(each, resolve)), json];
  return {
    ...json,
    properties: Object.assign({}, ...parts.map((each) => each?.properties)),
    required: [...new Set(parts.flatMap((each) => each?.required ?? []))],
  };
}

/** The object at a path of relations, whether it is one, none or a list. */
function objectAt(schema: Json, path: readonly string[], resolve: (value: Json) => Json): Json {
  const object = plainObject(schema, resolve);
  const [name, ...rest] = path;
  return name === undefined ? object : objectAt(object?.properties?.[name], rest, resolve);
}

function plainObject(schema: Json, resolve: (value: Json) => Json): Json {
  const json = wholeSchema(schema, resolve);
  if (json?.items !== undefined) return plainObject(json.items, resolve);
  const alternatives: Json[] = json?.anyOf ?? json?.oneOf ?? [];
  if (json?.properties !== undefined || alternatives.length === 0) return json;
  return alternatives.map((each) => plainObject(each, resolve)).find((each) => each?.properties !== undefined);
}
