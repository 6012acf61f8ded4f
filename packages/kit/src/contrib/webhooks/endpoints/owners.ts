// Owners of endpoints are users of the application, whose table may be anyone's: names are looked up beside the lists, never joined.
import type { UserDirectory } from '../../../auth/user-directory.ts';
import { quoteName } from '../../../db/names.ts';
import type { Db } from '../../../db/db.ts';
import { containsSql } from '../../../db/portable-sql.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
/** Names that contain a searched text; more than this and the search says too little. */
const FOUND_MAX = 100;

/** User names by id; ids that no user has are missing. */
export async function ownerNames(db: Db, users: UserDirectory | null, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const wanted = users === null ? [] : [...new Set(ids)].filter((id) => mayBeId(id, users));
  if (users === null || wanted.length === 0) return new Map();
  const { id, username, idType = 'uuid' } = users.table;
  const rows = await db.query<{ id: unknown; username: string }>(
    `select ${quoteName(id)} as id, ${quoteName(username)} as username from ${tableOf(users)}
     where ${quoteName(id)} in (${wanted.map((_, index) => `$${index + 1}`).join(', ')})`,
    wanted.map((each) => (idType === 'bigint' || idType === 'integer' ? Number(each) : each)),
  );
  return new Map(rows.map((row) => [String(row.id), row.username]));
}

/** The ids of users whose name contains the text. */
export async function ownersNamedLike(db: Db, users: UserDirectory | null, text: string): Promise<readonly string[]> {
  if (users === null) return [];
  const rows = await db.query<{ id: unknown }>(
    `select ${quoteName(users.table.id)} as id from ${tableOf(users)}
     where ${containsSql(quoteName(users.table.username), '$1', db.dialect)} limit ${FOUND_MAX}`,
    [text],
  );
  return rows.map(({ id }) => String(id));
}

function tableOf({ table }: UserDirectory): string {
  return table.name.split('.').map(quoteName).join('.');
}

/** PostgreSQL refuses to compare a key with text that is none. */
function mayBeId(id: string, { table: { idType = 'uuid' } }: UserDirectory): boolean {
  if (idType === 'uuid') return UUID.test(id);
  return idType === 'text' || /^\d{1,18}$/.test(id);
}
