import { type Expression, sql, type SqlBool } from 'kysely';
import type { Db } from '../engine/db.ts';
import type { Model } from '../declare/model.ts';
import { quoteName } from '../declare/names.ts';
import type { Columns } from '../declare/rows.ts';
import { compileWhere } from '../sql/where/compile-where.ts';
import { splitAtPlaceholders } from '../sql/where/where-sql.ts';
import type { Where } from '../sql/where/where.ts';
import { requireArguments } from '../../options/read-options.ts';
import { aModel, anObject } from '../../options/value-rule.ts';

/**
 * A tree for Kysely: `kyselyOf<Shop>(db).selectFrom('orders').where(whereExpression(db, orders, { item: { contains: 'lamp' } }))`.
 * `alias` is the name of the table in the query (default: its own).
 */
export function whereExpression<C extends Columns>(
  db: Pick<Db, 'dialect'>,
  model: Model<C>,
  where: Where<C> | boolean,
  alias?: string,
): Expression<SqlBool> {
  requireArguments('whereExpression()', { db, model }, { db: anObject, model: aModel });
  const compiled = compileWhere(model, where);
  const values = compiled.values(db.dialect);
  const { parts, order } = splitAtPlaceholders(compiled.text(db.dialect, quoteName(alias ?? model.name), 1));
  return sql<SqlBool>(Object.assign(parts, { raw: parts }), ...order.map((index) => values[index]));
}
