import { resource } from '../../../crud/checks/declare-resource.ts';
import { jsonSchema } from '../../../http/declare/json-schema.ts';
import { sealedEntries } from '../models.ts';
import { sightsOf } from './sight.ts';

const json = (description: string) => jsonSchema<unknown>({ description });
const target = ['target_type', 'target_id'] as const;

/** Entries, for staff. That something was done is shown to all of them; its values only where the resource of the record shows them to the reader. */
export const auditResource = resource(sealedEntries, {
  name: 'audit_entry',
  audiences: { staff: { rows: true, tenant: 'all' } },
  hidden: ['content_hash', 'previous_hash', 'salt', 'values_hash'],
  shown: {
    before: {
      requires: target,
      response: json('Null when there was nothing before. Sensitive members are masked.'),
      load: async (rows, loading) => (await sightsOf(rows, loading)).map((sight, index) => sight.fields(rows[index]?.before)),
    },
    after: {
      requires: target,
      response: json('Null when there is nothing after. Sensitive members are masked.'),
      load: async (rows, loading) => (await sightsOf(rows, loading)).map((sight, index) => sight.fields(rows[index]?.after)),
    },
    metadata: {
      requires: target,
      response: json('More about the change. Sensitive members are masked.'),
      load: async (rows, loading) => (await sightsOf(rows, loading)).map((sight, index) => (sight.isHidden ? null : rows[index]?.metadata)),
    },
  },
  computed: {
    values_hidden: {
      requires: target,
      response: jsonSchema<boolean>({
        type: 'boolean',
        description: 'You cannot see the record, so `before`, `after` and `metadata` are null. Superusers see every record.',
      }),
      load: async (rows, loading) => (await sightsOf(rows, loading)).map(({ isHidden }) => isHidden),
    },
  },
  audit: false,
});
