import { BOUNDED_ROWS } from '../read/bounded.ts';
import { quoteName } from '../../db/declare/names.ts';
import type { Db } from '../../db/engine/db.ts';
import { countUpTo } from '../../db/rows/count-rows.ts';
import { whereSql } from '../../db/sql/where/where-sql.ts';
import type { Where } from '../../db/sql/where/where.ts';

/**
 * A condition whose rows are in partial indexes of the table; `indexed` are the conditions of these, word for word. A few old rows among a million others
 * are found by the indexes. Where there are many, any walk meets them soon.
 */
export async function rareWhere(db: Db, table: string, condition: string, indexed: readonly string[]): Promise<Where> {
  const ids = indexed.map((each) => `select id from ${quoteName(table)} where ${each}`).join(' union all ');
  const rare = { from: `from (${ids}) rare`, parameters: [], mayBeLong: `count of rare rows of ${table}` };
  const areFew = (await countUpTo(db, rare, BOUNDED_ROWS)) !== null;
  return whereSql(areFew ? `${condition} and this.id in (${ids})` : condition) as Where;
}
