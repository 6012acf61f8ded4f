import { resource } from '../../../crud/checks/declare-resource.ts';
import { one, type ToOne } from '../../../crud/declare/relation.ts';
import type { AnyResource } from '../../../crud/declare/resource.ts';
import type { Db } from '../../../db/engine/db.ts';
import type { Where } from '../../../db/sql/where/where.ts';
import { jsonSchema } from '../../../http/declare/json-schema.ts';
import { signedDownload } from '../rows/download.ts';
import { uploads } from '../models.ts';
import type { Upload } from '../declare/upload.ts';

/** A file is part of the record that refers to it: who sees the record gets the file. */
const COMPLETE = Object.freeze({ state: 'complete' }) as Where<(typeof uploads)['columns']>;

const SHOWN: ReadonlySet<string> = new Set(['id', 'filename', 'content_type', 'completed_at']);

/**
 * Which uploads generic controllers accept: complete ones of the caller itself. So a client may send the id of its own upload only. `?expand=`
 * of {@link uploadRelation} shows name, size, type and a signed address to everyone who sees the row.
 */
export function uploadResource(database: () => Db): AnyResource {
  const declared = resource(uploads, {
    changes: 'trigger',
    name: 'upload',
    owner: 'owner_id',
    rows: ({ tenant }) => ({ state: 'complete', tenant_key: tenant ?? '' }),
    input: [],
    hidden: (Object.keys(uploads.columns) as (keyof typeof uploads.columns)[]).filter((name) => !SHOWN.has(name)),
    computed: {
      // A number, as everywhere else in uploads; a bigint column would be text.
      size: {
        requires: ['size'],
        response: jsonSchema<number>({ type: 'integer', minimum: 0 }),
        value: ({ size }: Pick<Upload, 'size'>) => Number(size),
      },
      url: {
        requires: ['id', 'final_key', 'content_type', 'filename'],
        response: jsonSchema<string>({ type: 'string', description: 'A signed address that works for a few minutes.' }),
        load: (rows: readonly Pick<Upload, 'id' | 'final_key' | 'content_type' | 'filename'>[], { caller }) =>
          // Who looks as a user takes no links along.
          Promise.all(rows.map(async (row) => (caller.principal?.isViewing === true ? '' : (await signedDownload(database(), row)).url))),
      },
    },
  });
  return declared;
}

/** The upload that an `uploadRef()` column refers to, for `relations` of a resource: `{ invoice: uploadRelation('invoice_id') }`. */
export function uploadRelation(column: string): ToOne<(typeof uploads)['columns']> {
  return Object.freeze({ ...one(() => uploads, column), seenWithRow: COMPLETE });
}
