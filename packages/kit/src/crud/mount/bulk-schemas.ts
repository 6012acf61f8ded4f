import { jsonSchema } from '../../http/declare/json-schema.ts';
import { type JsonSchema, partSchemaOf, type Schema } from '../../http/declare/schema.ts';
import { pascal } from '../../db/declare/component-name.ts';
import type { Policy } from '../policy/policy.ts';

/** `{ items: […] }`: the rows in the order of the request. */
export function bulkItemsSchema(policy: Policy, item: Schema): Schema {
  const items = { type: 'array', items: partSchemaOf(item, 'output') };
  return bulkResult(policy, { type: 'object', properties: { items }, required: ['items'] });
}

/** `{ results: […] }`: what each item came to. */
export function bulkResultsSchema(policy: Policy, item: Schema): Schema {
  return bulkResult(policy, resultsJson(partSchemaOf(item, 'output')));
}

/** What each row of a request came to, in its order. */
export function resultsJson(data: JsonSchema, more: JsonSchema = {}): JsonSchema {
  const result = {
    type: 'object',
    properties: {
      index: { type: 'integer', minimum: 0, description: 'The place of the item in the request.' },
      status: { type: 'integer' },
      data,
      code: { type: 'string', description: 'Of the error.' },
      detail: { type: 'string' },
      errors: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            location: { type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'integer' }] } },
            code: { type: 'string' },
            message: { type: 'string' },
          },
          required: ['location', 'code', 'message'],
        },
      },
    },
    required: ['index', 'status'],
  };
  const properties = { results: { type: 'array', items: result }, ...more };
  return { type: 'object', properties, required: Object.keys(properties) };
}

/** One component for the bulk operations of a resource. */
function bulkResult(policy: Policy, result: JsonSchema): Schema {
  const name = `${pascal(policy.name)}BulkResult`;
  return jsonSchema({ $ref: `#/$defs/${name}`, $defs: { [name]: result } });
}
