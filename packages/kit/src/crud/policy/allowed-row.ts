import type { Db } from '../../db/engine/db.ts';
import { quoteName } from '../../db/declare/names.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { Item } from '../declare/item.ts';
import type { WriteScope } from './crud-request.ts';

/** The column of a statement that says whether the action is allowed. */
const ALLOWED = '~allowed';

/** What a SELECT says of whether the action is allowed on a row. */
export function decisionSql({ dialect }: Db, { allowed }: WriteScope, parameters: unknown[]): string {
  if (allowed === undefined || allowed.compiled.constant === true) return '';
  return `, case when ${allowed.compiled.append(dialect, 't0', parameters)} then 1 else 0 end as ${quoteName(ALLOWED)}`;
}

/** The row without the decision; 403 where the caller sees the row and may not do this to it. */
export function allowedRow({ allowed }: WriteScope, row: Item): Item {
  if (allowed === undefined || !(ALLOWED in row)) return row;
  const { [ALLOWED]: isAllowed, ...rest } = row;
  if (Number(isAllowed) !== 1)
    throw coreErrors.permission_denied({
      detail: `You can view this object, but you do not have the action "${allowed.action}".`,
      extensions: { action: allowed.action },
    });
  return rest;
}
