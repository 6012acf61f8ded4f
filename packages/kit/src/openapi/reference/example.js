import { resolve } from './api-document.js';

/**
 * An example for a schema that brings none: enough to show the shape. One that is sent has null where null is accepted: an id that was made up
 * would be refused.
 */
export function example(schema, isSent = false, depth = 0) {
  const target = resolve(schema);
  if (target.example !== undefined) return target.example;
  if (Array.isArray(target.examples) && target.examples.length > 0) return target.examples[0];
  if (target.default !== undefined) return target.default;
  if ('const' in target) return target.const;
  if (target.enum) return target.enum[0];
  if (depth > 5) return null;
  if (isSent && depth > 0 && acceptsNull(target)) return null;
  const choice = target.oneOf?.[0] ?? target.anyOf?.[0];
  if (choice) return example(choice, isSent, depth + 1);
  if (target.allOf) return Object.assign({}, ...target.allOf.map((part) => example(part, isSent, depth + 1)));
  const type = [target.type ?? 'object'].flat().find((name) => name !== 'null') ?? 'null';
  if (type === 'object')
    return Object.fromEntries(
      Object.entries(target.properties ?? {})
        .filter(([name, property]) => target.required?.includes(name) || !resolve(property).readOnly)
        .map(([name, property]) => [name, example(property, isSent, depth + 1)]),
    );
  if (type === 'array') return target.items && target.items !== true ? [example(target.items, isSent, depth + 1)] : [];
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
