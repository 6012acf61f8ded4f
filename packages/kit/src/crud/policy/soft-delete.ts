import type { ModelStatements } from '../../db/sql/model-statements.ts';
import { uuidv7 } from '../../db/values/uuidv7.ts';
import type { CrudRequest } from './crud-request.ts';
import type { AnyResourceOptions } from '../declare/resource.ts';

/** How rows of a resource are deleted without being removed: the columns of `softDelete()` and the relations that go along. */
export interface SoftDelete {
  readonly deletedAt: string;
  readonly deletionId: string;
  readonly deletedBy: string | undefined;
  /** Names of to-many relations. */
  readonly cascade: readonly string[];
}

const COLUMNS = { deletedAt: 'deleted_at', deletionId: 'deletion_id' } as const;

/** A model with the columns of `softDelete()` is deleted softly unless its resource says `softDelete: false`. */
export function softDeleteOf({ byName, columns }: ModelStatements, option: AnyResourceOptions['softDelete']): SoftDelete | undefined {
  if (option === false || !byName.has(COLUMNS.deletedAt) || !byName.has(COLUMNS.deletionId)) return undefined;
  const deletedBy = columns.find(({ settings }) => settings.stamp === 'deleted_by')?.name;
  return { ...COLUMNS, deletedBy, cascade: typeof option === 'object' ? (option.cascade ?? []) : [] };
}

/** What one deletion writes to every row it takes: they share its id, so that they can be restored together. */
export function newDeletion({ deletedAt, deletionId, deletedBy }: SoftDelete, { clock, user }: CrudRequest): Record<string, unknown> {
  return {
    [deletedAt]: clock.now(),
    [deletionId]: uuidv7(clock),
    ...(deletedBy === undefined ? {} : { [deletedBy]: user?.id ?? null }),
  };
}

/** What a restored row has instead. */
export function noDeletion({ deletedAt, deletionId, deletedBy }: SoftDelete): Record<string, unknown> {
  return { [deletedAt]: null, [deletionId]: null, ...(deletedBy === undefined ? {} : { [deletedBy]: null }) };
}

/** What a deletion wrote to a row, for those that go along. */
export function deletionOf(
  { deletedAt, deletionId, deletedBy }: SoftDelete,
  row: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const names = deletedBy === undefined ? [deletedAt, deletionId] : [deletedAt, deletionId, deletedBy];
  return Object.fromEntries(names.map((name) => [name, row[name]]));
}
