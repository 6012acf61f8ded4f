import { Column, type ReferenceTarget, t } from './column.ts';
import type { ModelIndex } from './table-from-columns.ts';
import { readOptions } from '../../options/read-options.ts';
import { rule } from '../../options/value-rule.ts';

/** A column the toolkit sets: an insert may leave it out, a client may not send it. */
type KeptColumn<S> = Column<S, true, false>;

/** Users by table: a reference that becomes NULL when the user is removed. Without it the id is kept as text. */
type Users = string | (() => ReferenceTarget);

/** Ids of users that live elsewhere. */
const USER_ID_LENGTH_MAX = 64;

const users = rule(
  "true, the name of the users' table, or a function that returns its model",
  (value) => value === true || typeof value === 'string' || typeof value === 'function',
);

/** `created_at` and `updated_at`, set by every insert and update. */
export function timestamps(): { readonly created_at: KeptColumn<Date>; readonly updated_at: KeptColumn<Date> } {
  const now = t.timestamp().dbDefault('now').readOnly();
  const created = new Column<Date, true, false>({ ...now.settings, default: (clock) => clock.now() });
  return { created_at: created, updated_at: new Column<Date, true, false>({ ...created.settings, touch: (clock) => clock.now() }) };
}

/** `created_by` and `updated_by`: the ids of the users who wrote the row. Set by generic CRUD; your own writes set them themselves. */
export function userStamps(users?: Users): {
  readonly created_by: KeptColumn<string | null>;
  readonly updated_by: KeptColumn<string | null>;
} {
  return { created_by: stamp('created_by', users), updated_by: stamp('updated_by', users) };
}

/** `version`, 1 for a new row and one more with every update, counted by the database. */
export function versioned(): { readonly version: KeptColumn<number> } {
  const first = t.int().dbDefault(1).readOnly();
  return { version: new Column<number, true, false>({ ...first.settings, default: () => 1, increment: true }) };
}

interface DeletedColumns {
  readonly deleted_at: KeptColumn<Date | null>;
  /** Rows that one deletion took with it share it, so that they can be restored together. */
  readonly deletion_id: KeptColumn<string | null>;
}

/** `deleted_at` and `deletion_id`; with `by` also `deleted_by`, the id of the user (`true`) or a reference to the user's row. */
export function softDelete(): DeletedColumns;
export function softDelete(options: {
  /** Also `deleted_by`: the id of the user (`true`), or a reference to the row of the user. */
  readonly by: true | Users;
}): DeletedColumns & { readonly deleted_by: KeptColumn<string | null> };
export function softDelete(options: { readonly by?: true | Users } = {}): DeletedColumns & {
  readonly deleted_by?: KeptColumn<string | null>;
} {
  const { by } = readOptions('softDelete()', options, { by: users });
  const columns = { deleted_at: t.timestamp().nullable().readOnly(), deletion_id: t.uuid().nullable().internal() };
  return by === undefined ? columns : { ...columns, deleted_by: stamp('deleted_by', by === true ? undefined : by) };
}

/** A unique index that deleted rows do not take part in: `indexes: [softDeleteUnique('email')]`. */
export function softDeleteUnique(...columns: readonly string[]): ModelIndex {
  return { columns, unique: true, where: 'deleted_at is null' };
}

function stamp(role: 'created_by' | 'updated_by' | 'deleted_by', users: Users | undefined): KeptColumn<string | null> {
  const id = users === undefined ? t.text(USER_ID_LENGTH_MAX) : t.ref(users, { onDelete: 'set null' });
  return new Column<string | null, true, false>({ ...id.nullable().readOnly().settings, stamp: role });
}
