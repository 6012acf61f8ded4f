import { couldBeUserId, tableSql, userIdSql } from '../../../auth/people/user-table.ts';
import { quoteName } from '../../../db/declare/names.ts';
import type { Db } from '../../../db/engine/db.ts';
import { tenantsIn } from '../declare/tenants.ts';
import { tenantErrors } from '../errors.ts';

/** The id of a user as the user table spells it, locked until the end of the transaction, so that what a user owns is counted one after the other. */
export async function lockUser(tx: Db, id: string): Promise<string> {
  const { table } = tenantsIn(tx).users;
  const column = `u.${quoteName(table.id)}`;
  const lock = tx.dialect === 'postgres' ? ' for no key update' : '';
  const [row] = couldBeUserId(id, table)
    ? await tx.query<{ id: string }>(
        `select cast(${column} as text) as id from ${tableSql(table)} u where ${column} = ${userIdSql('$1', table, tx.dialect)}${lock}`,
        [id],
      )
    : [];
  if (row === undefined) throw tenantErrors.member_not_found({ detail: 'There is no such user.' });
  return row.id;
}
