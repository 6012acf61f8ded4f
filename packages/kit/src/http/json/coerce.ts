import type { JsonSchema } from '../declare/schema.ts';
import { alternativesOf, flattened, isNode, propertiesOf } from './schema-node.ts';

/** Texts of a URL or a header, turned into what the schema asks for. What cannot be turned stays text, so the schema reports it. */
export type Coercion = (text: string | readonly string[]) => unknown;

const numberGrammar = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d{1,3})?$/;

/** One coercion per declared name. Names whose schema takes plain text have none. */
export function compileCoercions(root: JsonSchema): ReadonlyMap<string, Coercion | null> {
  return new Map(propertiesOf(flattened(root, root)).map(([name, node]) => [name, compile(node, root)]));
}

function compile(raw: JsonSchema, root: JsonSchema): Coercion | null {
  const schema = flattened(raw, root);
  const types = typesOf(schema, root);
  if (types.has('array')) {
    const item = isNode(schema['items']) ? compile(schema['items'], root) : null;
    return (text) => {
      const texts = typeof text === 'string' ? [text] : text;
      return item === null ? [...texts] : texts.map(item);
    };
  }
  const takesNumber = types.has('integer') || types.has('number');
  const takesBoolean = types.has('boolean');
  // A schema that also takes text keeps the text: "10" must not become 10 for `string | number`.
  if (types.has('string') || (!takesNumber && !takesBoolean)) return null;
  return (text) => {
    if (typeof text !== 'string') return text;
    if (takesNumber && numberGrammar.test(text)) return Number(text);
    if (takesBoolean && (text === 'true' || text === 'false')) return text === 'true';
    return text;
  };
}

function typesOf(schema: JsonSchema, root: JsonSchema): ReadonlySet<string> {
  const types = new Set<string>();
  const { type } = schema;
  for (const each of Array.isArray(type) ? type : [type]) if (typeof each === 'string') types.add(each);
  const values = 'const' in schema ? [schema['const']] : Array.isArray(schema['enum']) ? schema['enum'] : [];
  if (types.size === 0) for (const value of values) types.add(typeof value);
  for (const alternative of alternativesOf(schema, root)) for (const each of typesOf(flattened(alternative, root), root)) types.add(each);
  return types;
}
