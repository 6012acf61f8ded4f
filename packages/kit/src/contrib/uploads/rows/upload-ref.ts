import { isUuid } from '../../../db/values/uuid.ts';
import { t, type Column } from '../../../db/declare/column.ts';
import type { Db } from '../../../db/engine/db.ts';
import type { Model } from '../../../db/declare/model.ts';
import { quoteName } from '../../../db/declare/names.ts';
import type { OnDelete } from '../../../db/declare/table-definition.ts';
import { readOptions, requireArguments } from '../../../options/read-options.ts';
import { aDate, required, wholeNumber, queryable, aList } from '../../../options/value-rule.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import { downloadUrl } from './download.ts';
import { uploads } from '../models.ts';
import { findOwnUpload, findUpload, type UploadScope } from './store.ts';
import type { Upload } from '../declare/upload.ts';

/** A column that holds the id of an upload. While a row refers to it, the upload cannot be deleted (`restrict`, unless said otherwise). */
export function uploadRef(
  options: {
    /** What becomes of the row when the upload is deleted. */
    readonly onDelete?: OnDelete;
  } = {},
): Column<string> {
  return t.ref(() => uploads, options);
}

/** The upload a client named, if it is complete and the caller's own; else 422 at the given field. To be called before the id is written. */
export async function requireUpload(db: Db, scope: UploadScope, id: string, location: readonly (string | number)[]): Promise<Upload> {
  requireArguments('requireUpload()', { db }, { db: queryable });
  const upload = isUuid(id) ? await findOwnUpload(db, scope, id) : null;
  if (upload?.state === 'complete') return upload;
  const [code, message] =
    upload === null
      ? (['unknown_upload', 'There is no such upload.'] as const)
      : (['not_ready', `The upload is ${upload.state}.`] as const);
  throw coreErrors.validation_error({ errors: [{ location, code, message }] });
}

/** What a row's reader gets for an upload id. */
export interface ExpandedUpload {
  readonly id: string;
  readonly filename: string;
  readonly size: number;
  readonly content_type: string;
  readonly url: string;
  readonly url_expires_at: Date;
}

/** Name, size, type and a signed address. Null when there is no complete upload of this id. */
export async function expandUpload(db: Db, id: string): Promise<ExpandedUpload | null> {
  requireArguments('expandUpload()', { db }, { db: queryable });
  const upload = isUuid(id) ? await findUpload(db, id) : null;
  if (upload?.state !== 'complete') return null;
  const { url, expiresAt } = await downloadUrl(db, upload);
  const { filename, content_type } = upload;
  return { id: upload.id, filename, size: Number(upload.size), content_type, url, url_expires_at: expiresAt };
}

/** Columns of these models that refer to uploads. */
export function uploadColumns(models: readonly Model[]): readonly { readonly table: string; readonly column: string }[] {
  return models.flatMap(({ name, columns }) =>
    Object.entries(columns)
      .filter(([, { settings }]) => typeof settings.reference?.target === 'function' && settings.reference.target().name === uploads.name)
      .map(([column]) => ({ table: name, column })),
  );
}

/** How many rows of these models refer to an upload: asked of the tables, never counted by hand. */
export async function countReferences(db: Db, models: readonly Model[], id: string): Promise<number> {
  requireArguments('countReferences()', { db, models }, { db: queryable, models: aList });
  let count = 0;
  for (const { table, column } of uploadColumns(models)) {
    const [row] = await db.query<{ count: number | bigint }>(
      `select count(*) as count from ${quoteName(table)} where ${quoteName(column)} = $1`,
      [id],
    );
    count += Number(row?.count ?? 0);
  }
  return count;
}

/** Complete uploads that no row of these models refers to, oldest first. */
export async function unreferencedUploads(
  db: Db,
  models: readonly Model[],
  options: {
    /** Uploads that were completed before this time. */
    readonly olderThan: Date;
    /** Most uploads to return. */
    readonly limit: number;
  },
): Promise<Upload[]> {
  const { olderThan, limit } = readOptions('unreferencedUploads()', options, {
    olderThan: required(aDate),
    limit: required(wholeNumber(1)),
  });
  const unused = uploadColumns(models).map(
    ({ table, column }) => `and not exists (select 1 from ${quoteName(table)} r where r.${quoteName(column)} = uploads.id)`,
  );
  return db.query<Upload>(`select * from uploads where state = 'complete' and completed_at < $1 ${unused.join(' ')} order by id limit $2`, [
    olderThan,
    limit,
  ]);
}
