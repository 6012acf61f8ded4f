import { isMembers } from '../../options/value-rule.ts';

type JsonSchema = Readonly<Record<string, unknown>>;

/** Members are schemas by name. */
const MAPS: ReadonlySet<string> = new Set(['properties', 'patternProperties', 'dependentSchemas', '$defs']);
/** Members are values, whatever they look like. */
const VALUES: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'example', 'examples']);
const REFERENCE = /^#\/\$defs\/([^/]+)$/;
/** Of a definition without a name of its own; schema libraries call theirs `__schema0`. */
const SELF = '__schema';

type Definitions = Readonly<Record<string, JsonSchema>>;
type Change = (part: JsonSchema) => JsonSchema;

/** The schema with another in the place of each that is directly in it. */
function withParts(schema: JsonSchema, change: Change): JsonSchema {
  const part = (value: unknown): unknown => (Array.isArray(value) ? value.map(part) : isMembers(value) ? change(value) : value);
  const byName = (value: object): object => Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, part(inner)]));
  return Object.fromEntries(
    Object.entries(schema).map(([keyword, value]: [string, unknown]) => {
      if (VALUES.has(keyword)) return [keyword, value];
      return [keyword, MAPS.has(keyword) && isMembers(value) ? byName(value) : part(value)];
    }),
  );
}

const withAllParts = (schema: JsonSchema, change: Change): JsonSchema => withParts(change(schema), (part) => withAllParts(part, change));

/** A schema that refers to itself as the root, which it no longer is as a part of another one. */
export function asDefinition(json: JsonSchema): JsonSchema {
  let refersToRoot = false;
  const { $defs, ...own } = withAllParts(json, (part) => {
    if (part['$ref'] !== '#') return part;
    refersToRoot = true;
    return { ...part, $ref: `#/$defs/${SELF}` };
  });
  return refersToRoot ? { $ref: `#/$defs/${SELF}`, $defs: { ...($defs as Definitions | undefined), [SELF]: own } } : json;
}

/**
 * A schema that was put together of others with `$defs` of their own, such as one with an id in a computed field. A reference starts at the root, so what it names
 * has to be there: else it names nothing, and members that nobody declared pass. Two definitions of one name that differ get two names: `Money`, `Money_2`.
 */
export function withRootDefinitions(json: JsonSchema): JsonSchema {
  let count = 0;
  withAllParts(json, (part) => {
    if (part['$defs'] !== undefined) count += 1;
    return part;
  });
  return count === (json['$defs'] === undefined ? 0 : 1) ? json : new Lifted(json).whole();
}

/** A definition, what it is called at the root, and whether it is the first one there. */
interface Taken {
  readonly name: string;
  readonly at: string;
  readonly isNew: boolean;
}

class Lifted {
  readonly #root: JsonSchema;
  readonly #definitions: Record<string, JsonSchema> = {};
  readonly #texts = new Map<string, string>();

  constructor(root: JsonSchema) {
    this.#root = root;
  }

  whole(): JsonSchema {
    return { ...this.#part(this.#root, new Map()), $defs: this.#definitions };
  }

  /** `outer`: what the definitions around it are called at the root. */
  #part({ $defs, ...schema }: JsonSchema, outer: ReadonlyMap<string, string>): JsonSchema {
    let names = outer;
    if (isMembers($defs)) {
      const taken = Object.keys($defs).map((name) => this.#take(name, $defs as Definitions));
      const inner = new Map([...outer, ...taken.map(({ name, at }) => [name, at] as const)]);
      for (const { name, at, isNew } of taken) if (isNew) this.#definitions[at] = this.#part($defs[name] as JsonSchema, inner);
      names = inner;
    }
    const { $ref } = schema;
    const target = typeof $ref === 'string' ? REFERENCE.exec($ref)?.[1] : undefined;
    const at = target === undefined ? undefined : names.get(target);
    return withParts(at === undefined ? schema : { ...schema, $ref: `#/$defs/${at}` }, (part) => this.#part(part, names));
  }

  #take(name: string, definitions: Definitions): Taken {
    const text = textOf(name, definitions);
    for (let count = 1; ; count += 1) {
      const at = count === 1 ? name : `${name}_${count}`;
      const known = this.#texts.get(at);
      if (known !== undefined && known !== text) continue;
      this.#texts.set(at, text);
      return { name, at, isNew: known === undefined };
    }
  }
}

/** Equal for definitions that are the same with all that they refer to. */
function textOf(name: string, definitions: Definitions): string {
  const reached = new Set([name]);
  for (const each of reached)
    withAllParts(definitions[each] as JsonSchema, (part) => {
      const target = typeof part['$ref'] === 'string' ? REFERENCE.exec(part['$ref'])?.[1] : undefined;
      if (target !== undefined && definitions[target] !== undefined) reached.add(target);
      return part;
    });
  return JSON.stringify([...reached].toSorted().map((each) => [each, definitions[each]]));
}
