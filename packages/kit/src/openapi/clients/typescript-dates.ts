import type { JsonSchema } from '../../http/declare/schema.ts';
import type { ClientPlan } from './client-plan.ts';
import { DATE_FORMAT, propertyName, schemaName } from './typescript-types.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- a JSON Schema
type Json = any;

/** The same API with points in time that are dates. */
export function withDates(plan: ClientPlan): ClientPlan {
  const isTime = (key: string, value: unknown) => key === 'format' && value === 'date-time';
  return JSON.parse(JSON.stringify(plan), (key, value: unknown) => (isTime(key, value) ? DATE_FORMAT : value)) as ClientPlan;
}

/** Where the dates of values are, as text of the client: `{ created_at: 0, get invoice() { return uploadDates; } }`. */
export class TypescriptDates {
  readonly #schemas: Readonly<Record<string, JsonSchema>>;
  readonly #named = new Map<string, string | undefined>();

  constructor(schemas: Readonly<Record<string, JsonSchema>>) {
    this.#schemas = schemas;
  }

  /** Constants of the named schemas that these texts use, and of those that they use in turn. */
  constants(texts: readonly string[]): string[] {
    const all = new Map(
      Object.keys(this.#schemas)
        .filter((name) => this.#byName(name) === constantName(name))
        .map((name) => [constantName(name), this.#of(this.#schemas[name]) ?? '']),
    );
    const used = new Set<string>();
    const use = (text: string): void => {
      for (const [name] of text.matchAll(/\b\w+Dates\b/g))
        if (all.has(name) && !used.has(name)) {
          used.add(name);
          use(all.get(name)!);
        }
    };
    for (const text of texts) use(text);
    return [...all].filter(([name]) => used.has(name)).map(([name, text]) => `const ${name}: Dates = ${text};`);
  }

  /** Of several schemas of one result; undefined where there is no date. */
  of(schemas: readonly JsonSchema[]): string | undefined {
    return this.#of(schemas.length === 1 ? schemas[0] : { anyOf: schemas });
  }

  #of(schema: Json): string | undefined {
    if (typeof schema !== 'object' || schema === null) return undefined;
    const name = nameIn(schema);
    if (name !== undefined) return this.#byName(name);
    const types = [schema.type].flat();
    if (types.includes('string') && schema.format === DATE_FORMAT) return '0';
    if (Array.isArray(schema.prefixItems)) return this.#positions(schema);
    if (schema.items !== undefined && schema.properties === undefined) return this.#of(schema.items);
    const choices: Json[] = [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])];
    if (choices.length > 0) return this.#merged([...choices, { ...schema, anyOf: undefined, oneOf: undefined, allOf: undefined }]);
    const members = Object.entries<Json>(schema.properties ?? {}).map(([member, each]) => [propertyName(member), each] as const);
    // Members of any name.
    const all = [...members, ...(typeof schema.additionalProperties === 'object' ? [['"*"', schema.additionalProperties] as const] : [])];
    return this.#members(all);
  }

  #members(members: readonly (readonly [member: string, schema: Json])[]): string | undefined {
    const found = members.flatMap(([member, each]) => {
      const text = this.#of(each);
      if (text === undefined) return [];
      return [/^\w+Dates$/.test(text) ? `get ${member}() { return ${text}; }` : `${member}: ${text}`];
    });
    return found.length === 0 ? undefined : `{ ${found.join(', ')} }`;
  }

  /** A list whose items differ by position. */
  #positions({ prefixItems, items }: Json): string | undefined {
    const found = this.#members([...prefixItems.entries(), ...(typeof items === 'object' ? [['"*"', items]] : [])]);
    return found === undefined ? undefined : `{ "[]": ${found} }`;
  }

  /** Alternatives and parts: members of all of them. A member that is a date in one and another text in the other cannot be told apart: it stays text. */
  #merged(choices: readonly Json[]): string | undefined {
    const found = [...new Set(choices.flatMap((each) => this.#of(each) ?? []))];
    if (found.length < 2) return found[0];
    const flat = choices.map((each) => this.#flat(each));
    const members = new Map<string, Json[]>();
    for (const { properties = {} } of flat)
      for (const [member, each] of Object.entries<Json>(properties)) members.set(member, [...(members.get(member) ?? []), each]);
    const agreed = [...members].filter(([, schemas]) => new Set(schemas.map((each) => this.#of(each))).size === 1);
    return this.#of({ properties: Object.fromEntries(agreed.map(([member, [first]]) => [member, first])) });
  }

  #flat(schema: Json): Json {
    const name = nameIn(schema);
    const own: Json = name === undefined ? schema : (this.#schemas[name] ?? {});
    const parts: Json[] = (own.allOf ?? []).map((each: Json) => this.#flat(each));
    return { properties: Object.assign({}, ...parts.map(({ properties }) => properties), own.properties ?? {}) };
  }

  /** The constant of an object; what is a list or another name of something else is written in its place, so that no constant needs a later one. */
  #byName(name: string): string | undefined {
    if (this.#named.has(name)) return this.#named.get(name);
    // A schema that contains itself has dates only where something else in it has.
    this.#named.set(name, undefined);
    const text = this.#of(this.#schemas[name]);
    this.#named.set(name, text?.startsWith('{') === true ? constantName(name) : text);
    return this.#named.get(name);
  }
}

const nameIn = ({ $ref }: Json): string | undefined => (typeof $ref === 'string' ? $ref.split('/').at(-1) : undefined);

const constantName = (name: string): string => {
  const plain = schemaName(name);
  return `${plain.charAt(0).toLowerCase()}${plain.slice(1)}Dates`;
};

export const DATES_RUNTIME = `/** Where dates are in a value: 0 is one; lists are as their items, or have "[]" with their positions; "*" is every other member. */
interface Dates {
  readonly [member: string]: Dates | 0;
}

/** Texts of dates become dates, in the value itself. */
function revive(value: unknown, dates: Dates | 0): unknown {
  if (Array.isArray(value)) {
    const positions = dates === 0 ? undefined : dates['[]'];
    if (positions !== undefined && positions !== 0) reviveMembers(value as unknown as Record<string, unknown>, positions);
    else for (const [index, item] of value.entries()) value[index] = revive(item, dates);
  }
  else if (dates === 0) return typeof value === 'string' ? new Date(value) : value;
  else if (typeof value === 'object' && value !== null) reviveMembers(value as Record<string, unknown>, dates);
  return value;
}

function reviveMembers(members: Record<string, unknown>, dates: Dates): void {
  for (const name of Object.keys(members)) {
    const inner = Object.hasOwn(dates, name) ? dates[name] : dates['*'];
    if (inner !== undefined) members[name] = revive(members[name], inner);
  }
}`;
