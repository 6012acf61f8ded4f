import { jsonSchema } from '../../http/declare/json-schema.ts';
import { partSchemaOf, type Schema } from '../../http/declare/schema.ts';
import { columnJsonSchema } from '../../db/declare/column-json.ts';
import { rowJsonSchema } from './schemas.ts';
import type { ListDeclaration } from '../read/list-query.ts';
import { widestView } from '../policy/make-view.ts';
import { defaultOrdering } from '../read/ordering.ts';

/** The data of every event of a live list: `upsert` has both members, `remove` the key, the others none. `without`: fields that its items leave out. */
export function liveEventSchema({ policy, ordering, output }: ListDeclaration, item: Schema, without: readonly string[] = []): Schema {
  const followed = [...widestView(policy, output).fields.keys()].filter((name) => !without.includes(name));
  return jsonSchema({
    type: 'object',
    properties: {
      key: { ...columnJsonSchema(policy.settingsOf(policy.key.name), 'output'), description: 'The key of the record.' },
      item: without.length === 0 ? partSchemaOf(item, 'output') : rowJsonSchema(policy, new Set(followed)),
    },
    // Of the list without `ordering`, for clients that keep one.
    'x-ordering': defaultOrdering(policy, ordering).map(({ column, descending }) => `${descending ? '-' : ''}${column}`),
  });
}
