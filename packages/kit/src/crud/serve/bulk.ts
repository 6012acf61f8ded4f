import type { Db } from '../../db/engine/db.ts';
import type { BulkBody } from '../input/bulk-body.ts';
import type { ReadItem } from '../input/item-reader.ts';
import type { CrudRequest } from '../policy/crud-request.ts';
import type { Asked } from '../write/intent.ts';
import type { BulkOptions } from '../options/bulk-options.ts';
import type { FaultsBeside } from './faults-beside.ts';
import type { ResourceAccess } from './resource-access.ts';
import type { Context } from '../read/list-access.ts';
import type { Item } from '../declare/item.ts';
import { ManyRows, newRow } from './many-rows.ts';

type BulkVerb = 'create' | 'update' | 'destroy';
const ACTION: Readonly<Record<BulkVerb, string>> = { create: 'create', update: 'partialUpdate', destroy: 'destroy' };
const STATUS: Readonly<Record<BulkVerb, number>> = { create: 201, update: 200, destroy: 204 };

/** `POST /bulk`, `/bulk-update`, `/bulk-delete`: many rows in one transaction, results in the order of the request. */
export class BulkOperations {
  readonly #access: ResourceAccess;
  readonly #faultsBeside: FaultsBeside;
  readonly #many: ManyRows;
  readonly #isPartial: boolean;

  constructor(access: ResourceAccess, faultsBeside: FaultsBeside, { mode }: Required<BulkOptions>) {
    this.#access = access;
    this.#faultsBeside = faultsBeside;
    this.#many = new ManyRows(access);
    this.#isPartial = mode === 'partial';
  }

  readonly create = (context: Context): Promise<object | undefined> => this.#write(context, 'create');

  readonly update = (context: Context): Promise<object | undefined> => this.#write(context, 'update');

  readonly destroy = (context: Context): Promise<object | undefined> => this.#write(context, 'destroy');

  async #write(context: Context, verb: BulkVerb): Promise<object | undefined> {
    const { items: given } = context.body as BulkBody;
    const prepared = await this.#many.prepare(context, ACTION[verb], given.length);
    const { request, db, intent, present } = prepared;
    if (this.#isPartial) {
      const data = async (savepoint: Db, written: readonly Item[]) =>
        verb === 'destroy' ? undefined : (await present(savepoint, written))[0];
      const items = await this.#judged(context, request, given, verb);
      return this.#many.report(context, await this.#many.oneByOne(db, prepared, items, { verb, status: STATUS[verb], data }));
    }
    const rows = verb === 'create' ? given.map(newRow) : this.#many.keyed(given);
    let items: readonly Item[] = [];
    const build = async (tx: Db, written: readonly Item[]): Promise<void> => void (items = await present(tx, written));
    const asked: Asked = verb === 'destroy' ? intent.asked : { ...intent.asked, present: { isDeep: true, build } };
    await this.#access.pipeline.run(db, request, { ...intent, verb, rows, asked });
    return verb === 'destroy' ? undefined : { items };
  }

  /** Items that the schema refuses, with what the rules of the resource say of the rest of them. */
  async #judged(context: Context, request: CrudRequest, items: readonly ReadItem[], verb: BulkVerb): Promise<readonly ReadItem[]> {
    if (verb === 'destroy' || this.#access.resource.options.validate === undefined) return items;
    const { items: sent } = context.request.body as { readonly items: readonly unknown[] };
    const judged: ReadItem[] = [];
    for (const [index, item] of items.entries()) {
      const placed = [{ given: sent?.[index], at: item.at }];
      const action = verb === 'create' ? 'create' : 'partialUpdate';
      const more = item.faults === undefined ? [] : await this.#faultsBeside.ofItems(context, request, action, placed);
      judged.push(item.faults === undefined ? item : { ...item, faults: [...item.faults, ...more] });
    }
    return judged;
  }
}
