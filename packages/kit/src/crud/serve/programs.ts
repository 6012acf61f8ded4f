import type { Db } from '../../db/engine/db.ts';
import type { CompiledWhere } from '../../db/sql/where/compile-where.ts';
import type { Where } from '../../db/sql/where/where.ts';
import { exchangeOf } from '../../http/serve/serve-route.ts';
import type { Item } from '../declare/item.ts';
import { limits } from '../declare/limits.ts';
import type { Via } from '../declare/resource.ts';
import type { CrudRequest } from '../policy/crud-request.ts';
import type { Policy } from '../policy/policy.ts';
import type { RowState } from '../policy/row-scope.ts';
import { narrowWhole, unitFor } from '../read/list.ts';
import type { Context } from '../read/list-access.ts';
import { buildItems } from '../read/present.ts';
import { presentRows, selectRows } from '../read/read.ts';
import { SelectUnit } from '../read/select.ts';
import type { Shape } from '../read/shape.ts';
import type { Intent } from '../write/intent.ts';
import { NO_CONDITIONS, type ResourceAccess, WHOLE } from './resource-access.ts';

/** Makes the request of one action of a caller and runs the work with it. */
export type AsCaller = <V>(action: string, work: (request: CrudRequest) => Promise<V>) => Promise<V>;

/** {@link RowWriter} with its types erased. */
export interface AnyRowWriter {
  create(values: Item): Promise<Item>;
  update(key: string, changes: Item): Promise<Item>;
  destroy(key: string): Promise<void>;
  transition(key: string, name: string, input?: unknown): Promise<Item>;
  restore(key: string): Promise<Item>;
  action(key: string, name: string, input?: unknown): Promise<Item>;
}

type Presented<V> = V extends readonly unknown[] ? Item[] : Item;

/** A resource for code: routes of the controller's own (`…(context, …)`), jobs, commands and the admin site (`…As(request, …)`). */
export class Programs {
  readonly #access: ResourceAccess;

  constructor(access: ResourceAccess) {
    this.#access = access;
  }

  async find(context: Context, key: string): Promise<Item> {
    const access = this.#access;
    const request = await access.request(context, 'retrieve');
    const ofParent = await access.parentRows(context, request, access.policy.database(request), false);
    const row = await this.findAs(request, key, 'live', ofParent);
    if (exchangeOf(context.request).verdict === 'unknown') await context.authorize(row);
    return row;
  }

  async findAs(request: CrudRequest, key: string, rows: RowState = 'live', also: readonly CompiledWhere[] = NO_CONDITIONS): Promise<Item> {
    const { column, value } = this.#access.rowKey(key);
    const [row] = await this.rowsAs(request, { [column.name]: value } as Where, 1, rows, also);
    if (row === undefined) throw this.#access.policy.missing();
    return row;
  }

  async rows(context: Context, where: Where | undefined, limit: number = limits.pageMax): Promise<Item[]> {
    const access = this.#access;
    const request = await access.request(context, 'list');
    const ofParent = await access.parentRows(context, request, access.policy.database(request), true);
    return this.rowsAs(request, where, limit, 'live', ofParent);
  }

  /** Whole rows, as code has them, among those the caller sees. */
  async rowsAs(
    request: CrudRequest,
    where: Where | undefined,
    limit: number,
    rows: RowState = 'live',
    also: readonly CompiledWhere[] = NO_CONDITIONS,
  ): Promise<Item[]> {
    const { policy } = this.#access;
    const unit = wholeUnit(policy);
    const db = policy.database(request);
    // One row is asked for by its key.
    const whole = limit > 1 && rows === 'live' ? await narrowWhole(db, request, policy) : [];
    const conditions = [...whole, ...also, ...(where === undefined ? [] : [await policy.rows.compiled(request, where)])];
    return selectRows(db, request, { unit, where: conditions, limit, rows, isFreeForm: true, forCode: true });
  }

  /** The pipeline for routes of the controller's own; what they write is trusted like a hook. */
  write(context: Context, tx: Db | undefined): AnyRowWriter {
    return this.writeAs(async (action, work) => work(await this.#access.request(context, action)), tx);
  }

  /** The pipeline for code; `as` makes the request of each write. */
  writeAs(as: AsCaller, tx: Db | undefined, via: Via = 'single'): AnyRowWriter {
    const access = this.#access;
    const write = (action: string, intent: Pick<Intent, 'verb' | 'action'>, key?: string, values: Item = {}): Promise<Item> =>
      as(action, async (request) => {
        refuseGuarded(access.policy, values);
        const row = { values, sent: [], ...(key === undefined ? {} : { key: access.rowKey(key) }) };
        const db = tx ?? access.policy.database(request);
        return (await access.pipeline.run(db, request, { ...intent, via, rows: [row] }))[0] as Item;
      });
    return {
      create: (values) => write('create', { verb: 'create' }, undefined, values),
      update: (key, changes) => write('update', { verb: 'update' }, key, changes),
      destroy: async (key) => void (await write('destroy', { verb: 'destroy' }, key)),
      transition: (key, name, input) => write(name, { verb: 'transition', action: { name, input } }, key),
      action: (key, name, input) => write(name, { verb: 'action', action: { name, input } }, key),
      restore: (key) => write('restore', { verb: 'restore' }, key),
    };
  }

  async present<V extends Item | readonly Item[]>(context: Context, rows: V): Promise<Presented<V>> {
    return this.presentAs(await this.#access.request(context, 'retrieve'), rows);
  }

  /** Rows as the caller may see them. */
  async presentAs<V extends Item | readonly Item[]>(request: CrudRequest, given: V): Promise<Presented<V>> {
    const rows: readonly Item[] = Array.isArray(given) ? given : [given];
    const unit = unitFor(this.#access.shape(await this.#access.view(request), WHOLE, 1), []);
    const db = this.#access.policy.database(request);
    const items = unit.readsRelations ? await this.#presentJoined(request, unit, rows) : await buildItems(db, request, unit, rows);
    return (Array.isArray(given) ? items : items[0]) as Presented<V>;
  }

  /** What is shown needs columns of related rows: they are read again, in one statement. */
  async #presentJoined(request: CrudRequest, unit: SelectUnit, rows: readonly Item[]): Promise<Item[]> {
    if (rows.length === 0) return [];
    const { policy } = this.#access;
    const { key } = policy;
    const db = policy.database(request);
    const where = policy.rows.compile(request, { [key.name]: { in: rows.map((row) => row[key.name]) } } as Where);
    const found = await selectRows(db, request, { unit, where: [where], isFreeForm: rows.length > 1, forCode: true });
    const items = await presentRows(db, request, unit, found);
    const byKey = new Map(items.map((item, index) => [String(unit.extra(found[index] as Item, key.name)), item]));
    return rows.map((row) => {
      const item = byKey.get(String(row[key.name]));
      if (item === undefined) throw policy.missing();
      return item;
    });
  }
}

/** A program that passes on what a client sent must not open a guarded column by that. */
function refuseGuarded(policy: Policy, values: Item): void {
  const guarded = policy.guardedIn(values);
  if (guarded.length > 0)
    throw new Error(
      `resource(${policy.model.name}) does not write "${guarded.join('", "')}": the column is guarded. Use the function of its module, or open it: fields: { ${guarded[0]}: writableBy(permission) }.`,
    );
}

const wholeUnits = new WeakMap<Policy, SelectUnit>();

/** Every column of the row, hidden or not: for code, never for the wire. */
function wholeUnit(policy: Policy): SelectUnit {
  let unit = wholeUnits.get(policy);
  if (unit === undefined) {
    const columns = policy.codeColumns.map((name) => ({
      kind: 'column' as const,
      name,
      settings: policy.settingsOf(name),
      rule: undefined,
      shown: 'always' as const,
    }));
    const shape: Shape = { policy, key: '~whole', columns, computed: [], places: policy.codeColumns, edges: [], isWhole: true };
    wholeUnits.set(policy, (unit = new SelectUnit(shape)));
  }
  return unit;
}
