import { resource } from '../../../crud/checks/declare-resource.ts';
import { writableBy } from '../../../crud/declare/field-rule.ts';
import { STAFF } from '../../../crud/declare/resource.ts';
import type { Db } from '../../../db/engine/db.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import { jsonSchema } from '../../../http/declare/json-schema.ts';
import { isStaff } from '../../../permissions/built-ins.ts';
import { groups } from '../models.ts';
import { countMembers } from '../users/group-store.ts';
import { addGroupMember, createGroup, deleteGroup, removeGroupMember, renameGroup } from '../users/groups.ts';
import { requireUser } from '../users/manage-users.ts';

/** Its columns are guarded: only the functions of this module set them. */
interface GroupInput {
  readonly name: string;
  readonly tenant_key?: string;
}

/** A user by id, user name or e-mail address. */
const MemberBody = jsonSchema<{ readonly user: string }>({
  type: 'object',
  properties: { user: { type: 'string', minLength: 1, maxLength: 254 } },
  required: ['user'],
  additionalProperties: false,
});

/** Groups as staff see them. The functions of this module write them. */
export const groupResource = resource(groups, {
  changes: 'trigger',
  name: 'group',
  admin: { rows: true },
  writes: 'verbs',
  hidden: ['managed_by'],
  fields: { name: writableBy(isStaff), tenant_key: writableBy(isStaff) },
  computed: {
    members: {
      requires: ['id'],
      response: jsonSchema<number>({ type: 'integer' }),
      async load(rows, { db }) {
        const counts = await countMembers(
          db,
          rows.map(({ id }) => id),
        );
        return rows.map(({ id }) => counts.get(id) ?? 0);
      },
    },
  },
  hooks: {
    create({ input, tx, principal, requestId }) {
      const { name, tenant_key: tenantKey = '' } = input as GroupInput;
      return named(() => createGroup(tx, { name, tenantKey: tenantKey === '' ? null : tenantKey }, { by: principal, requestId }));
    },
    update: ({ before, input, tx, principal, requestId }) =>
      named(() => renameGroup(tx, before.id, (input as Partial<GroupInput>).name ?? before.name, { by: principal, requestId })),
    destroy: ({ before, tx, principal, requestId }) => deleteGroup(tx, before.id, { by: principal, requestId }),
  },
  actions: {
    'add-member': {
      audience: STAFF,
      lock: false,
      input: MemberBody,
      summary: 'Add a user to a group',
      async run({ row, input, tx, principal, requestId }) {
        const user = await chosenUser(tx, input.user);
        const isNew = await addGroupMember(tx, row.id, user.id, { by: principal, requestId });
        return `${user.username} ${isNew ? 'is a member now.' : 'was a member already.'}`;
      },
    },
    'remove-member': {
      audience: STAFF,
      lock: false,
      input: MemberBody,
      summary: 'Remove a user from a group',
      async run({ row, input, tx, principal, requestId }) {
        const user = await chosenUser(tx, input.user);
        const wasThere = await removeGroupMember(tx, row.id, user.id, { by: principal, requestId });
        return `${user.username} ${wasThere ? 'is no longer a member.' : 'was not a member.'}`;
      },
    },
  },
});

/** A name that cannot be used is a fault of its field. */
async function named<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const code = (error as { code?: string }).code;
    if (code !== 'group_name_taken' && code !== 'invalid_group') throw error;
    const message = (error as { detail?: string }).detail ?? 'The name cannot be used.';
    throw coreErrors.validation_error({ errors: [{ location: ['body', 'name'], code, message }] });
  }
}

function chosenUser(db: Db, login: string): ReturnType<typeof requireUser> {
  return requireUser(db, login).catch((error: { code?: string; detail?: string }) => {
    if (error.code !== 'user_not_found') throw error;
    throw coreErrors.validation_error({
      errors: [{ location: ['body', 'user'], code: 'user_not_found', message: error.detail ?? 'There is no such user.' }],
    });
  });
}
