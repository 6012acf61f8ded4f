import { jsonSchema } from '../../http/declare/json-schema.ts';
import { partSchemaOf, type Schema } from '../../http/declare/schema.ts';
import { columnJsonSchema } from '../../db/declare/column-json.ts';
import type { ListDeclaration } from '../read/list-query.ts';
import { defaultOrdering } from '../read/ordering.ts';

/** The data of every event of a live list: `upsert` has both members, `remove` the key, the others none. */
export function liveEventSchema({ policy, ordering }: ListDeclaration, item: Schema): Schema {
  return jsonSchema({
    type: 'object',
    properties: {
      key: { ...columnJsonSchema(policy.settingsOf(policy.key.name), 'output'), description: 'The key of the record.' },
      item: partSchemaOf(item, 'output'),
    },
    // Of the list without `ordering`, for clients that keep one.
    'x-ordering': defaultOrdering(policy, ordering).map(({ column, descending }) => `${descending ? '-' : ''}${column}`),
  });
}
