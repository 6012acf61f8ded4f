import { resource } from '../../../crud/checks/declare-resource.ts';
import { STAFF } from '../../../crud/declare/resource.ts';
import { jsonSchema } from '../../../http/declare/json-schema.ts';
import { isErased } from '../chain/chain.ts';
import { sealedEntries } from '../models.ts';
import { sightsOf } from './sight.ts';

/** The audience of those who manage a tenant. */
export const TENANT = 'tenant';

const json = (description: string) => jsonSchema<unknown>({ description });
const target = ['target_type', 'target_id'] as const;

/**
 * Entries: all of them for staff, and those of a tenant for who manages it. That something was done is shown to all of these; its values only where the
 * resource of the record shows them to the reader.
 */
export const auditResource = resource(sealedEntries, {
  changes: 'trigger',
  name: 'audit_entry',
  tenant: { column: 'tenant_id', none: '' },
  // Not the entries of no tenant: a caller without one would see those of everybody.
  rows: () => ({ tenant_id: { ne: '' } }),
  audiences: {
    [TENANT]: { rows: { tenant_id: { ne: '' } } },
    [STAFF]: { rows: true, tenant: 'all' },
  },
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
        description: 'You cannot see the record, so `before`, `after` and `metadata` are null.',
      }),
      load: async (rows, loading) => (await sightsOf(rows, loading)).map(({ isHidden }) => isHidden),
    },
    values_erased: {
      requires: ['salt', 'values_hash'],
      response: jsonSchema<boolean>({
        type: 'boolean',
        description: 'The values, names and the request id were erased with the person or the tenant that they belonged to.',
      }),
      ofRow: true,
      load: (rows) => rows.map(isErased),
    },
  },
  audit: false,
});
