import { resolve } from './api-document.js';

/**
 * An example for a schema that brings none: enough to show the shape. One that is sent has null where null is accepted, and no ids that may be
 * left out: an id, or a text of some pattern, that was made up would be rejected. `above`: the schemas that this one is in, so that one within itself ends.
 */
export function example(schema, isSent = false, above = []) {
  const depth = above.length;
  const target = resolve(schema);
  const path = [...above, target];
  if (target.example !== undefined) return target.example;
  if (Array.isArray(target.examples) && target.examples.length > 0) return target.examples[0];
  if (target.default !== undefined) return target.default;
  if ('const' in target) return target.const;
  if (target.enum) return target.enum[0];
  if (depth > 20) return null;
  if (isSent && depth > 0 && acceptsNull(target)) return null;
  const choice = target.oneOf?.[0] ?? target.anyOf?.[0];
  if (choice) return example(choice, isSent, path);
  if (target.allOf) return Object.assign({}, ...target.allOf.map((part) => example(part, isSent, path)));
  const type = [target.type ?? 'object'].flat().find((name) => name !== 'null') ?? 'null';
  if (type === 'object')
    return Object.fromEntries(
      Object.entries(target.properties ?? {})
        .filter(([name, property]) => target.required?.includes(name) || (depth < 5 && isShown(resolve(property), isSent, path)))
        .map(([name, property]) => [name, example(property, isSent, path)]),
    );
  if (type === 'array' && target.prefixItems) return target.prefixItems.map((item) => example(item, isSent, path));
  // A text that was made up, in a list that may be empty, would be rejected as often as an id.
  if (type === 'array' && isSent && !(target.minItems > 0) && isFreeText(target.items)) return [];
  if (type === 'array')
    return target.items && target.items !== true && !path.includes(resolve(target.items)) ? [example(target.items, isSent, path)] : [];
  if (type === 'integer' || type === 'number') return Math.min(Math.max(1, target.minimum ?? 1), target.maximum ?? 1);
  if (type === 'boolean') return true;
  if (type === 'null') return null;
  return (
    {
      'date-time': '2026-01-31T12:00:00.000Z',
      date: '2026-01-31',
      uuid: '019b0c1e-8f00-7000-8000-000000000001',
      email: 'name@example.org',
      decimal: '10.00',
      int64: '1',
      password: 'correct horse battery staple',
      uri: 'https://example.org/',
    }[target.format] ?? 'text'
  );
}

/** Of a member that may be left out. */
function isShown(property, isSent, path) {
  if (property.readOnly) return false;
  const isRepeated = path.includes(property) || (property.items && path.includes(resolve(property.items)));
  return !isRepeated && !(isSent && (property.format === 'uuid' || property.pattern));
}

function isFreeText(items) {
  const { type, format, enum: values, examples, example: one } = items && items !== true ? resolve(items) : {};
  return type === 'string' && [format, values, examples, one].every((each) => each === undefined);
}

function acceptsNull(schema) {
  return (
    [schema.type].flat().includes('null') ||
    [...(schema.oneOf ?? []), ...(schema.anyOf ?? [])].some((each) => resolve(each).type === 'null')
  );
}

export function mediaExample(media, isSent = false) {
  if (media.example !== undefined) return media.example;
  const first = Object.values(media.examples ?? {})[0];
  return first ? resolve(first).value : example(media.schema, isSent);
}
