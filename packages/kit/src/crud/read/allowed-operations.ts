import type { Db } from '../../db/engine/db.ts';
import { quoteName } from '../../db/declare/names.ts';
import { type CrudRequest, forAction } from '../policy/crud-request.ts';
import type { Policy } from '../policy/policy.ts';
import type { Item } from '../declare/item.ts';

/** Which of the operations the access of a resource lets the caller do to a row it sees. One statement, however many operations. */
export async function allowedOperations(
  policy: Policy,
  request: CrudRequest,
  row: Item,
  operations: readonly string[],
  db: Db = policy.database(request),
): Promise<ReadonlySet<string>> {
  if (policy.options.access === undefined || operations.length === 0) return new Set(operations);
  const { name, encode } = policy.key;
  const parameters: unknown[] = [];
  const columns: string[] = [];
  const open: string[] = [];
  for (const operation of operations) {
    const { allowed } = await policy.rows.forWrite(forAction(request, operation));
    if (allowed === undefined || allowed.compiled.constant === true) open.push(operation);
    else {
      const condition = allowed.compiled.append(db.dialect, 't0', parameters);
      columns.push(`case when ${condition} then 1 else 0 end as ${quoteName(operation)}`);
    }
  }
  if (columns.length === 0) return new Set(open);
  const [found] = await db.query<Item>(
    `select ${columns.join(', ')} from ${policy.table} t0 where t0.${quoteName(name)} = $${parameters.push(encode(row[name]))}`,
    parameters,
    { replanned: true },
  );
  return new Set([...open, ...operations.filter((operation) => Number(found?.[operation] ?? 0) === 1)]);
}
