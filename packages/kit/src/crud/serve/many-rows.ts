import type { Db } from '../../db/engine/db.ts';
import type { Where } from '../../db/sql/where/where.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { FieldError, KitError } from '../../errors/kit-error.ts';
import { itemError } from '../input/item-error.ts';
import type { ReadItem } from '../input/item-reader.ts';
import type { CrudRequest } from '../policy/crud-request.ts';
import { unitFor } from '../read/list.ts';
import type { Context } from '../read/list-access.ts';
import { buildItems } from '../read/present.ts';
import { presentRows, selectRows } from '../read/read.ts';
import type { Shape } from '../read/shape.ts';
import type { Item } from '../declare/item.ts';
import type { Asked, Intent, RowIntent } from '../write/intent.ts';
import { noteItems } from '../policy/note-items.ts';
import { ofVersion } from '../write/precondition.ts';
import type { PendingChange } from '../write/record-changes.ts';
import type { RowKey } from '../write/row-statements.ts';
import { missingAt } from '../write/steps.ts';
import type { ResourceAccess } from './resource-access.ts';

/** What a row of a request that has several came to. */
export type RowResult =
  | { readonly index: number; readonly status: number; readonly data?: unknown }
  | {
      readonly index: number;
      readonly status: number;
      readonly code: string;
      readonly detail: string;
      readonly errors?: readonly FieldError[];
    };

/** A request that writes several rows. */
export interface ManyRowsRequest {
  readonly request: CrudRequest;
  readonly db: Db;
  readonly intent: Pick<Intent, 'via' | 'fixed'> & { readonly asked: Asked };
  readonly present: (tx: Db, rows: readonly Item[]) => Promise<Item[]>;
}

/** How each row of a request is written by itself. */
export interface EachRow extends Pick<Intent, 'verb' | 'action'> {
  readonly status: number;
  /** What the caller gets of a row. */
  readonly data: (savepoint: Db, written: readonly Item[], returned: unknown) => Promise<unknown>;
}

/** Rows that one request writes, in its order: bulk operations, and actions on a selection. */
export class ManyRows {
  readonly #access: ResourceAccess;

  constructor(access: ResourceAccess) {
    this.#access = access;
  }

  async prepare(context: Context, action: string, count: number): Promise<ManyRowsRequest> {
    const access = this.#access;
    const request = await access.request(context, action);
    noteItems(request, count);
    const { shape } = await access.singleShape(context, request, count);
    const db = access.policy.database(request);
    await access.parentRows(context, request, db, true);
    return { request, db, intent: { ...access.asked(context, shape), via: 'bulk' }, present: this.#presenter(request, shape) };
  }

  /** Each item is an intent in a savepoint of its own; what is wrong with one stays with it. A fault of the server fails all. */
  async oneByOne(db: Db, { request, intent }: ManyRowsRequest, items: readonly ReadItem[], each: EachRow): Promise<RowResult[]> {
    const { pipeline } = this.#access;
    const { verb, action, status } = each;
    return pipeline.together(db, async (tx, recorded) => {
      if (verb !== 'create') await this.#lock(tx, request, items, intent);
      const results: RowResult[] = [];
      for (const [index, item] of items.entries()) {
        const changes: PendingChange[] = [];
        try {
          const data = await tx.transaction(async (savepoint) => {
            const row = verb === 'create' ? checked(item) : this.#one(item);
            let returned: unknown;
            const asked = { ...intent.asked, ownsTransaction: true, returned: (value: unknown) => void (returned = value) };
            const written = await pipeline.run(savepoint, request, {
              ...intent,
              verb,
              ...(action === undefined ? {} : { action }),
              rows: [row],
              asked,
              changes,
            });
            return each.data(savepoint, written, returned);
          });
          recorded.push(...changes);
          results.push({ index, status, ...(data === undefined ? {} : { data }) });
        } catch (error) {
          const fault = itemError(error, item.at, item.valuesAt);
          if (fault === undefined || fault.status >= 500) throw error;
          results.push(failed(index, fault));
        }
      }
      return results;
    });
  }

  /** Every item with its key. A malformed one is as missing as an unknown one. */
  keyed(items: readonly ReadItem[]): RowIntent[] {
    const missing = items.filter((item) => this.#tryKey(item) === undefined);
    if (missing.length > 0)
      throw missingAt(
        this.#access.policy,
        missing.map(({ at }) => at),
      );
    this.#requireVersions(items);
    return items.map((item) => keyedRow(item, this.#tryKey(item) as RowKey));
  }

  /** Says how many items failed. Every item that was reached was authorized by itself. */
  report(context: Context, results: readonly RowResult[]): { readonly results: readonly RowResult[] } {
    this.#access.admitWithoutObject(context);
    context.reply.header('x-bulk-failed', String(results.filter(({ status }) => status >= 400).length));
    return { results };
  }

  /** Locks rows in the order of their keys, and nothing else: those that are not there are missed later. */
  async #lock(tx: Db, request: CrudRequest, items: readonly ReadItem[], { fixed }: Pick<Intent, 'fixed'>): Promise<void> {
    const keys = items.flatMap((item) => (item.faults === undefined ? (this.#tryKey(item) ?? []) : []));
    const [first] = keys;
    if (first === undefined) return;
    const { where, compiled } = await this.#access.policy.rows.visible(request);
    const values = keys.map(({ value }) => value);
    await this.#access.pipeline.lockRows(tx, { where, compiled }, first.column, values, fixed);
  }

  #presenter(request: CrudRequest, shape: Shape): ManyRowsRequest['present'] {
    const { policy } = this.#access;
    const unit = unitFor(shape, [policy.key.name]);
    return async (tx, rows) => {
      if (!unit.readsRelations) return buildItems(tx, request, unit, rows);
      const keyOf = (row: Item) => String(unit.extra(row, policy.key.name));
      const where = policy.rows.compile(request, { [policy.key.name]: { in: rows.map((row) => row[policy.key.name]) } } as Where);
      const found = await selectRows(tx, request, { unit, where: [where], isFreeForm: true, forCode: true });
      const items = await presentRows(tx, request, unit, found);
      const byKey = new Map(found.map((row, index) => [keyOf(row), items[index] as Item]));
      return rows.map((row) => byKey.get(String(row[policy.key.name])) as Item);
    };
  }

  #tryKey({ key = '' }: ReadItem): RowKey | undefined {
    try {
      return this.#access.rowKey(key);
    } catch {
      return undefined;
    }
  }

  #one(item: ReadItem): RowIntent {
    checked(item);
    return this.keyed([item])[0] as RowIntent;
  }

  #requireVersions(items: readonly ReadItem[]): void {
    const { policy, options } = this.#access;
    const name = policy.options.version as string | undefined;
    if (options.etag !== 'required' || name === undefined) return;
    const errors = items
      .filter(({ version }) => version === undefined)
      .map(({ at }) => ({ location: [...at, name], code: 'required', message: 'Give the version you read.' }));
    if (errors.length > 0) throw coreErrors.precondition_required({ detail: `Every item needs its "${name}".`, errors });
  }
}

export function newRow({ values, sent, at }: ReadItem): RowIntent {
  return { values, sent, at };
}

function checked(item: ReadItem): RowIntent {
  if (item.faults !== undefined) throw coreErrors.validation_error({ errors: item.faults });
  return newRow(item);
}

function failed(index: number, { status, code, detail, errors }: KitError): RowResult {
  return { index, status, code, detail, ...(errors === undefined ? {} : { errors }) };
}

function keyedRow({ values, sent, at, valuesAt, version }: ReadItem, key: RowKey): RowIntent {
  return { key, values, sent, at, ...(valuesAt === undefined ? {} : { valuesAt }), ifMatch: ofVersion(version) };
}
