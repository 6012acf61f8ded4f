import { model } from '../../db/declare/model.ts';
import { t } from '../../db/declare/column.ts';
import { grantIndexes } from './migrations/0001_initial.ts';
import { IDENTITY_LENGTH_MAX } from '../../db/values/identity-length.ts';
import { SUBJECT_LENGTH_MAX, userSubject } from './declare/subject.ts';

/** One row per subject and object. What of the object decides about lists (tenant, soft deletion) is on the row. */
export const grantModel = model(
  'grants',
  {
    id: t.uuidv7().pk(),
    /** `user:…`, `group:…`, `tenant`, `authenticated` or `public`. */
    subject: t.text(SUBJECT_LENGTH_MAX).person({ value: userSubject }),
    /** The name of the object's table. */
    object_type: t.text(63),
    object_id: t.text(IDENTITY_LENGTH_MAX),
    /** Empty where the object has no tenant. */
    tenant_key: t.text(IDENTITY_LENGTH_MAX).dbDefault('').tenant(),
    /** The name of a set, or a list of actions between commas: `,change,view,`. See stored-actions.ts. */
    actions: t.text(1000),
    /** The id of a user, or the name of a program. */
    granted_by: t.text(IDENTITY_LENGTH_MAX).nullable().person({ erase: 'unlink' }),
    created_at: t.timestamp(),
    expires_at: t.timestamp().nullable(),
    /** Set while the object is deleted softly. */
    object_deleted_at: t.timestamp().nullable(),
  },
  { guarded: true, indexes: [...grantIndexes, { columns: ['tenant_key', 'id'], where: "tenant_key <> ''", name: 'grants_of_tenant' }] },
);
