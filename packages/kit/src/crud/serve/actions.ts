import type { Db } from '../../db/engine/db.ts';
import { crudErrors } from '../declare/errors.ts';
import type { NamedAction } from '../mount/named-actions.ts';
import type { Item } from '../declare/item.ts';
import type { Context } from '../read/list-access.ts';
import { undone } from '../../db/engine/undone.ts';
import type { ActionBody } from '../input/bulk-body.ts';
import { type EachRow, ManyRows, type RowResult } from './many-rows.ts';
import type { ResourceAccess } from './resource-access.ts';

/** Transitions and actions on a selection: `POST /actions/<name>`. Each row is done by itself, with its own result. */
export class SelectionActions {
  readonly #many: ManyRows;

  constructor(access: ResourceAccess) {
    this.#many = new ManyRows(access);
  }

  run({ name, verb, rule }: NamedAction): (context: Context) => Promise<object> {
    return async (context) => {
      const { items, input, isDryRun } = context.body as ActionBody;
      if (isDryRun && rule.effects === 'outside') throw crudErrors.dry_run_not_possible();
      const prepared = await this.#many.prepare(context, name, items.length);
      const data: EachRow['data'] = async (savepoint: Db, written: readonly Item[], returned) =>
        rule.response === undefined ? (await prepared.present(savepoint, written))[0] : returned;
      const work = (db: Db): Promise<RowResult[]> =>
        this.#many.oneByOne(db, prepared, items, { verb, action: { name, input }, status: 200, data });
      const results = await (isDryRun ? undone(prepared.db, work) : work(prepared.db));
      return { ...this.#many.report(context, results), dry_run: isDryRun };
    };
  }
}
