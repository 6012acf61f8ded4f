import { Validator, type Schema, type SchemaDraft } from '@cfworker/json-schema';
import { jsonValue } from '../client/json-value.ts';
import { joinKeyPath } from './key-path.ts';
import { LoadFailure } from './load-failure.ts';
import type { Table } from './value.ts';

const DRAFTS: Readonly<Record<string, SchemaDraft>> = {
  'http://json-schema.org/draft-04/schema': '4',
  'http://json-schema.org/draft-07/schema': '7',
  'https://json-schema.org/draft/2019-09/schema': '2019-09',
  'https://json-schema.org/draft/2020-12/schema': '2020-12',
};

/** A longer list does not help to find the first mistake. */
const REPORTED_MAX = 5;

/** Refuses a document that does not match its JSON Schema. Messages name keys and keywords; the validator's own text quotes values. */
export function checkSchema(document: Table, schemaBytes: Uint8Array, origin: string): void {
  const schema = parseSchema(schemaBytes, origin);
  const draft = draftOf(schema, origin);
  let errors: { instanceLocation: string; keyword: string }[];
  try {
    errors = new Validator(schema, draft, false).validate(document).errors;
  } catch {
    throw new LoadFailure('schema', origin, 'the schema cannot be applied: it holds an unresolved $ref or an invalid pattern');
  }
  if (errors.length === 0) return;
  const found = [...new Set(errors.map((error) => `${keysOf(error.instanceLocation)} fails "${error.keyword}"`))];
  const more = found.length > REPORTED_MAX ? ` and ${found.length - REPORTED_MAX} more` : '';
  throw new LoadFailure('schema', origin, `the document does not match its schema: ${found.slice(0, REPORTED_MAX).join(', ')}${more}`);
}

function parseSchema(bytes: Uint8Array, origin: string): Schema | boolean {
  let text: string;
  let schema: unknown;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    schema = jsonValue(text);
  } catch {
    throw new LoadFailure('schema', origin, 'the schema file is not valid JSON');
  }
  if (typeof schema === 'boolean') return schema;
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) {
    throw new LoadFailure('schema', origin, 'the schema file must hold a JSON object');
  }
  // The validator ignores this keyword, so documents would pass unchecked.
  if (text.includes('"$dynamicRef"')) throw new LoadFailure('schema', origin, 'the schema uses $dynamicRef, which is not supported');
  return schema;
}

function draftOf(schema: Schema | boolean, origin: string): SchemaDraft {
  const named: unknown = typeof schema === 'object' ? schema.$schema : undefined;
  if (named === undefined) return '2020-12';
  const draft = typeof named === 'string' ? DRAFTS[named.replace(/#$/, '')] : undefined;
  if (draft === undefined)
    throw new LoadFailure('schema', origin, 'the schema names a $schema other than draft-04, draft-07, 2019-09 or 2020-12');
  return draft;
}

function keysOf(pointer: string): string {
  const keys = pointer
    .split('/')
    .slice(1)
    .map((part) => decodePart(part).replaceAll('~1', '/').replaceAll('~0', '~'));
  return keys.length === 0 ? 'the document' : joinKeyPath(keys);
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
