import { jsonSchema } from '../../http/declare/json-schema.ts';
import { jsonSchemaOf, type Schema } from '../../http/declare/schema.ts';
import { columnJsonSchema } from '../../db/declare/column-json.ts';
import type { Policy } from '../policy/policy.ts';

/** The data of every event of a live list: `upsert` has both members, `remove` the key, the others none. */
export function liveEventSchema(policy: Policy, item: Schema): Schema {
  return jsonSchema({
    type: 'object',
    properties: {
      key: { ...columnJsonSchema(policy.settingsOf(policy.key.name), 'output'), description: 'The key of the record.' },
      item: jsonSchemaOf(item, 'output'),
    },
  });
}
