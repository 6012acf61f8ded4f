import { FAULTS_MAX } from '../../errors/fault-collector.ts';
import type { FieldError } from '../../errors/kit-error.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import type { JsonSchema } from '../declare/schema.ts';
import {
  alternativesOf,
  discriminatorOf,
  flattened,
  isArrayNode,
  isLoose,
  isNode,
  isObjectNode,
  nodes,
  propertiesOf,
} from './schema-node.ts';
import { isMembers } from '../../options/value-rule.ts';

type Location = (string | number)[];

/** Adds a fault for every member of the value the schema does not know, up to {@link FAULTS_MAX}. `location` is one growing and shrinking list, copied only into faults. */
export type UnknownFieldCheck = (value: unknown, location: Location, faults: FieldError[]) => void;

/**
 * Compiles the check from the JSON Schema, because most schema libraries drop unknown members silently and a misspelt field must not
 * be ignored. Null when nothing can be unknown. A schema that allows additional properties stays loose.
 */
export function compileUnknownFields(root: JsonSchema): UnknownFieldCheck | null {
  const known = new Map<JsonSchema, { check: UnknownFieldCheck | null }>();

  function compile(raw: JsonSchema): UnknownFieldCheck | null {
    const schema = flattened(raw, root);
    const cached = known.get(schema);
    if (cached !== undefined) return (value, location, faults) => cached.check?.(value, location, faults);
    const entry: { check: UnknownFieldCheck | null } = { check: null };
    known.set(schema, entry);
    entry.check = build(schema);
    return entry.check;
  }

  function build(schema: JsonSchema): UnknownFieldCheck | null {
    const alternatives = alternativesOf(schema, root);
    if (alternatives.length > 0) return union(alternatives);
    if (isObjectNode(schema)) return object(schema);
    if (isArrayNode(schema)) return array(schema);
    return null;
  }

  function object(schema: JsonSchema): UnknownFieldCheck | null {
    const members = new Map(propertiesOf(schema).map(([name, node]) => [name, compile(node)]));
    const extra = isNode(schema['additionalProperties']) ? compile(schema['additionalProperties']) : null;
    const patterns = isNode(schema['patternProperties'])
      ? Object.keys(schema['patternProperties']).map((each) => new RegExp(each, 'u'))
      : [];
    const loose = isLoose(schema);
    if (loose && extra === null && [...members.values()].every((check) => check === null)) return null;
    const names = [...members.keys()];
    return (value, location, faults) => {
      if (!isMembers(value)) return;
      for (const key of Object.keys(value)) {
        if (faults.length >= FAULTS_MAX) return;
        const check = members.get(key);
        if (check === undefined) {
          if (loose) inside(extra, (value as Record<string, unknown>)[key], key, location, faults);
          else if (!patterns.some((pattern) => pattern.test(key))) faults.push(unknownField(location, key, names));
        } else inside(check, (value as Record<string, unknown>)[key], key, location, faults);
      }
    };
  }

  function array(schema: JsonSchema): UnknownFieldCheck | null {
    const prefix = nodes(schema['prefixItems']).map(compile);
    const rest = isNode(schema['items']) ? compile(schema['items']) : null;
    if (rest === null && prefix.every((check) => check === null)) return null;
    return (value, location, faults) => {
      if (!Array.isArray(value)) return;
      for (let index = 0; index < value.length && faults.length < FAULTS_MAX; index += 1) {
        inside(index < prefix.length ? (prefix[index] ?? null) : rest, value[index], index, location, faults);
      }
    };
  }

  /** The alternative the discriminator names speaks; without one, the alternative with the fewest complaints. */
  function union(alternatives: readonly JsonSchema[]): UnknownFieldCheck | null {
    const choices = alternatives.map((raw) => {
      const schema = flattened(raw, root);
      return { schema, check: compile(schema) };
    });
    const objects = choices.filter(({ schema }) => isObjectNode(schema));
    const discriminator = discriminatorOf(objects.map(({ schema }) => schema));
    if (choices.every(({ check }) => check === null)) return null;
    // Alternatives that share a member all look into it, and so do the unions inside: without a memory of what was found, a body nested
    // 30 deep would be looked at 2^30 times. A value has one place in its body, so its faults are the same for every branch.
    const judged = new WeakMap<object, readonly FieldError[]>();
    return (value, location, faults) => {
      if (typeof value !== 'object' || value === null) return;
      const known = judged.get(value);
      if (known !== undefined) {
        faults.push(...known);
        return;
      }
      const shaped = choices.filter(
        ({ schema }) => (Array.isArray(value) ? isArrayNode(schema) : !isArrayNode(schema)) && schema['type'] !== 'null',
      );
      const chosen =
        discriminator &&
        objects.filter((_, index) => discriminator.values[index]?.includes((value as Record<string, unknown>)[discriminator.name]));
      let fewest: FieldError[] | undefined;
      for (const { check } of chosen?.length === 1 ? chosen : shaped) {
        const found: FieldError[] = [];
        check?.(value, location, found);
        if (fewest === undefined || found.length < fewest.length) fewest = found;
      }
      judged.set(value, fewest ?? []);
      faults.push(...(fewest ?? []));
    };
  }

  return compile(root);
}

function inside(check: UnknownFieldCheck | null, value: unknown, key: string | number, location: Location, faults: FieldError[]): void {
  if (check === null) return;
  location.push(key);
  check(value, location, faults);
  location.pop();
}

export function unknownField(location: readonly (string | number)[], key: string, names: readonly string[]): FieldError {
  return { location: [...location, key], code: 'unknown_field', message: `Unknown field.${didYouMean(key, names)}` };
}
