import { refName, resolve } from './api-document.js';
import { el, inline } from './dom.js';

export function typeText(schema) {
  if (schema === true || schema === undefined) return 'any';
  if (schema === false) return 'nothing';
  const name = refName(schema);
  if (name) return name;
  if ('const' in schema) return JSON.stringify(schema.const);
  if (schema.enum) return 'one of';
  for (const word of ['oneOf', 'anyOf']) {
    if (schema[word]) return [...new Set(schema[word].map(typeText))].join(' | ');
  }
  if (schema.allOf) return schema.allOf.map(typeText).join(' & ');
  const types = [schema.type ?? (schema.properties ? 'object' : 'any')].flat();
  return types
    .map(
      (type) =>
        (type === 'array' ? `array of ${typeText(schema.items)}` : type) + (schema.format && type !== 'null' ? ` (${schema.format})` : ''),
    )
    .join(' | ');
}

export const FACTS = [
  ['minimum', '≥'],
  ['exclusiveMinimum', '>'],
  ['maximum', '≤'],
  ['exclusiveMaximum', '<'],
  ['multipleOf', 'multiple of'],
  ['minLength', 'length ≥'],
  ['maxLength', 'length ≤'],
  ['minItems', 'items ≥'],
  ['maxItems', 'items ≤'],
  ['minProperties', 'fields ≥'],
  ['maxProperties', 'fields ≤'],
  ['pattern', 'matches'],
  ['default', 'default'],
];

export function facts(schema) {
  const parts = FACTS.filter(
    ([key]) =>
      schema[key] !== undefined &&
      !(key === 'maximum' && schema[key] === Number.MAX_SAFE_INTEGER) &&
      !(key === 'minimum' && schema[key] === Number.MIN_SAFE_INTEGER) &&
      !(key === 'pattern' && schema.format !== undefined),
  ).map(([key, label]) => [`${label} `, el('code', {}, key === 'pattern' ? schema[key] : JSON.stringify(schema[key])), '  ']);
  if (schema.enum) parts.push(schema.enum.map((value) => [el('code', {}, JSON.stringify(value)), ' ']));
  if (schema.uniqueItems) parts.push('no duplicates ');
  if (schema.additionalProperties === false) parts.push('no other fields ');
  return parts.length > 0 ? el('div', { class: 'facts' }, parts) : null;
}

export function flags(schema, required) {
  return [
    required && el('span', { class: 'flag' }, 'required'),
    schema['x-sensitive'] && el('span', { class: 'flag warn' }, 'sensitive'),
    schema.readOnly && el('span', { class: 'flag' }, 'read only'),
    schema.writeOnly && el('span', { class: 'flag' }, 'write only'),
    schema.deprecated && el('span', { class: 'flag warn' }, 'deprecated'),
  ];
}

export const typeNode = (schema) => {
  const name = refName(schema) ?? refName(schema?.items);
  const text = typeText(schema);
  return el('span', { class: 'type' }, name ? [text.slice(0, text.lastIndexOf(name)), el('a', { href: `#schema-${name}` }, name)] : text);
};

/** The fields of a schema as a nested list. References are links, so a schema that contains itself ends. */
export function tree(schema, depth = 0) {
  if (typeof schema !== 'object' || schema === null || depth > 6) return null;
  if (refName(schema) && depth > 0) return null;
  const target = resolve(schema);
  const parts = [...(target.allOf ?? []), target].map(resolve);
  const rows = [];
  for (const part of parts) {
    for (const [name, property] of Object.entries(part.properties ?? {})) {
      rows.push(
        el(
          'li',
          {},
          el('span', { class: 'name' }, name),
          ' ',
          typeNode(property),
          flags(property, part.required?.includes(name)),
          property.description && el('div', {}, inline(property.description)),
          facts(property),
          tree(property.items ?? property, depth + 1),
        ),
      );
    }
    if (typeof part.additionalProperties === 'object')
      rows.push(
        el(
          'li',
          {},
          el('span', { class: 'name' }, '(any name)'),
          ' ',
          typeNode(part.additionalProperties),
          tree(part.additionalProperties, depth + 1),
        ),
      );
  }
  for (const option of target.oneOf ?? target.anyOf ?? []) {
    const nested = tree(option, depth + 1);
    if (nested) rows.push(el('li', {}, typeNode(option), nested));
  }
  if (target.items && depth === 0) return el('div', {}, facts(target), typeNode(target), tree(target.items, 1));
  return rows.length > 0 ? el('ul', { class: 'tree' }, rows) : null;
}
