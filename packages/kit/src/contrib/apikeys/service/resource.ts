import { resource } from '../../../crud/checks/declare-resource.ts';
import { people } from '../../../crud/declare/people.ts';
import { STAFF, type WriteContext } from '../../../crud/declare/resource.ts';
import { jsonSchema } from '../../../http/declare/json-schema.ts';
import { hasRecentLogin } from '../../../permissions/built-ins.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import { apiKeyErrors } from '../errors.ts';
import { createApiKey } from '../manage/create.ts';
import { serviceUsers } from '../models.ts';
import { keyFaults } from '../resource.ts';
import { type IssuedKeyFields, NewServiceKeyBody, NewServiceUserBody, NoServiceUserPatch } from '../schemas.ts';
import { keyringOf } from '../verify/keyring.ts';
import { createServiceUser, removeServiceUser } from './manage-service-users.ts';

const { owner_not_found, key_limit_reached, impersonated_session } = apiKeyErrors;

/** Users of a tenant that are no people. */
export const serviceUserResource = resource(serviceUsers, {
  name: 'service_user',
  missing: apiKeyErrors.service_user_not_found,
  // An app without tenants has none of them.
  tenant: { column: 'tenant_id', none: '' },
  rows: () => ({ tenant_id: { ne: '' } }),
  audiences: { [STAFF]: { rows: true, tenant: 'all' } },
  relations: { user: people('user_id'), creator: people('created_by') },
  computed: {
    roles: {
      requires: ['tenant_id', 'user_id'],
      response: jsonSchema<readonly string[]>({
        type: 'array',
        items: { type: 'string' },
        description: 'Roles of the service user in the tenant.',
      }),
      async load(rows, { db }) {
        const { directory } = keyringOf(db).registry.tenants;
        const found = await directory?.memberships(
          db,
          rows.map(({ tenant_id: tenant, user_id: userId }) => ({ tenant, userId })),
        );
        return rows.map((_, index) => found?.[index]?.roles ?? []);
      },
    },
  },
  writes: 'verbs',
  bodies: { create: NewServiceUserBody, update: NoServiceUserPatch },
  once: { key: { on: ['issue-key'], description: 'The whole key. Shown this once.' } },
  hooks: {
    create({ input, tx, tenant, ...context }) {
      if (tenant === null) throw coreErrors.tenant_required();
      const { name, role } = input as { readonly name: string; readonly role: string };
      return createServiceUser(tx, { tenant, name, role }, { ...change(context), createdBy: context.user?.id ?? null });
    },
    destroy: ({ before, tx, ...context }) => removeServiceUser(tx, before, change(context)),
  },
  actions: {
    'issue-key': {
      summary: 'Create an API key of a service user',
      input: NewServiceKeyBody,
      permission: hasRecentLogin,
      raises: [owner_not_found, key_limit_reached, impersonated_session, coreErrors.recent_login_required],
      async run({ row, input, once, tx, caller, ...context }) {
        const { name, scopes, expires_at: expiresAt }: IssuedKeyFields = input;
        const errors = keyFaults(tx, caller, { name, scopes, ...(expiresAt === undefined ? {} : { expires_at: dateOf(expiresAt) }) }, null);
        if (errors.length > 0) throw coreErrors.validation_error({ errors });
        const { raw } = await createApiKey(tx, {
          user: row.user_id,
          tenant: row.tenant_id,
          name,
          scopes,
          expiresAt: expiresAt === undefined ? undefined : dateOf(expiresAt),
          by: context.principal,
          requestId: context.requestId,
        });
        once('key', raw);
      },
    },
  },
});

function dateOf(time: string | null): Date | null {
  return time === null ? null : new Date(time);
}

function change({ principal, requestId }: Pick<WriteContext, 'principal' | 'requestId'>) {
  return { by: principal, requestId: requestId ?? null };
}
