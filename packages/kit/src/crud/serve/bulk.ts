import type { Db } from '../../db/db.ts';
import type { ModelColumn } from '../../db/model-statements.ts';
import type { Where } from '../../db/where/where.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { jsonSchema } from '../../http/json-schema.ts';
import type { JsonSchema, Schema } from '../../http/schema.ts';
import { jsonSchemaOf } from '../../http/schema.ts';
import type { BulkBody } from './bulk-body.ts';
import { BulkWriter, type BulkResult, type KeyedItem } from '../write/bulk-write.ts';
import { callerOf, type CrudRequest } from '../policy/crud-request.ts';
import { crudErrors } from '../declare/errors.ts';
import type { ReadItem } from '../write/item-reader.ts';
import { noteItems } from './http-crud-request.ts';
import { limits } from '../declare/limits.ts';
import { unitFor } from '../read/list.ts';
import type { Context } from '../read/list-access.ts';
import { pascal } from '../declare/names.ts';
import type { Policy } from '../policy/policy.ts';
import { presentRows, selectRows } from '../read/read.ts';
import type { RowKey } from '../write/row-statements.ts';
import type { Item } from '../read/select-unit.ts';
import type { Shape } from '../read/shape.ts';
import type { Writer, WriteOptions } from '../write/write.ts';

export interface BulkOptions {
  /** `POST /bulk` */
  readonly create?: boolean;
  /** `POST /bulk-update` */
  readonly update?: boolean;
  /** `POST /bulk-delete` */
  readonly destroy?: boolean;
  /** `atomic`: any fault fails all. `partial`: each item has its own result, and the answer is 207. `atomic` unless given. */
  readonly mode?: 'atomic' | 'partial';
  /** Items of one request; 100 unless given. */
  readonly max?: number;
}

export function bulkOptions({
  create = false,
  update = false,
  destroy = false,
  mode = 'atomic',
  max = limits.bulk,
}: BulkOptions): Required<BulkOptions> {
  return { create, update, destroy, mode, max };
}

/** What bulk operations need of the controller they belong to. */
export interface BulkAccess {
  readonly policy: Policy;
  readonly writer: Writer;
  readonly lookup: ModelColumn;
  readonly options: { readonly etag?: 'required' | 'optional' | false };
  request(context: Context, action: string): CrudRequest | Promise<CrudRequest>;
  singleShape(context: Context, request: CrudRequest, rows: number): { readonly shape: Shape } | Promise<{ readonly shape: Shape }>;
  /** 404 for a parent in the address that the caller does not see. */
  parentRows(context: Context, request: CrudRequest, db: Db, mustExist: boolean): unknown;
  writeOptions(context: Context, shape: Shape): WriteOptions;
  rowKey(text: string): RowKey;
}

interface Prepared {
  readonly request: CrudRequest;
  readonly db: Db;
  readonly body: BulkBody;
  readonly options: WriteOptions;
  readonly present: (tx: Db, rows: readonly Item[]) => Promise<Item[]>;
}

/** `POST /bulk`, `/bulk-update`, `/bulk-delete`: many rows in one transaction, results in the order of the request. */
export class BulkOperations {
  readonly #access: BulkAccess;
  readonly #isPartial: boolean;

  constructor(access: BulkAccess, { mode }: Required<BulkOptions>) {
    this.#access = access;
    this.#isPartial = mode === 'partial';
  }

  readonly create = async (context: Context): Promise<object> => {
    const { request, db, body, options, present } = await this.#prepare(context, 'create');
    const { writer } = this.#access;
    const bulk = new BulkWriter(writer);
    if (!this.#isPartial) return { items: await bulk.create(db, request, body.items, options, present) };
    return this.#answer(
      context,
      await bulk.partial(db, body.items, async (tx, item, changes) => {
        refuseFaults(item);
        const row = await writer.create(tx, request, item.values, { ...options, via: 'bulk', sent: item.sent, changes });
        return { status: 201, data: (await present(tx, [row]))[0] as Item };
      }),
    );
  };

  readonly update = async (context: Context): Promise<object> => {
    const { request, db, body, options, present } = await this.#prepare(context, 'partialUpdate');
    const { writer } = this.#access;
    const bulk = new BulkWriter(writer);
    if (!this.#isPartial) return { items: await bulk.update(db, request, this.#keyed(body.items), body.isSame, options, present) };
    return this.#answer(
      context,
      await bulk.partial(
        db,
        body.items,
        async (tx, item, changes) => {
          const { key, ...one } = this.#one(item, options);
          const row = await writer.update(tx, request, key, item.values, { ...one, changes });
          return { status: 200, data: (await present(tx, [row]))[0] as Item };
        },
        (tx) => bulk.lock(tx, request, this.#reachable(body.items), options),
      ),
    );
  };

  readonly destroy = async (context: Context): Promise<object | undefined> => {
    const { request, db, body, options } = await this.#prepare(context, 'destroy');
    const { writer } = this.#access;
    const bulk = new BulkWriter(writer);
    if (!this.#isPartial) {
      await bulk.destroy(db, request, this.#keyed(body.items), options);
      return undefined;
    }
    return this.#answer(
      context,
      await bulk.partial(
        db,
        body.items,
        async (tx, item, changes) => {
          const { key, ...one } = this.#one(item, options);
          await writer.destroy(tx, request, key, { ...one, changes });
          return { status: 204 };
        },
        (tx) => bulk.lock(tx, request, this.#reachable(body.items), options),
      ),
    );
  };

  async #prepare(context: Context, action: string): Promise<Prepared> {
    const access = this.#access;
    const body = context.body as BulkBody;
    const request = await access.request(context, action);
    noteItems(request, body.items.length);
    const { shape } = await access.singleShape(context, request, body.items.length);
    const db = access.policy.database(request);
    await access.parentRows(context, request, db, true);
    // If-Match names one version of one row: here items carry their own.
    const { ifMatch: _ifMatch, ...options } = access.writeOptions(context, shape);
    return { request, db, body, options: { ...options, via: 'bulk' }, present: this.#presenter(request, shape) };
  }

  #presenter(request: CrudRequest, shape: Shape): Prepared['present'] {
    const { policy } = this.#access;
    const unit = unitFor(shape, [policy.key.name]);
    const isDeep = unit.batches.length > 0 || unit.joined().length > 0;
    return async (tx, rows) => {
      if (!isDeep) return Promise.all(rows.map(async (row) => unit.buildWhole(row, request, () => callerOf(request))));
      const keyOf = (row: Item) => String(unit.extra(row, policy.key.name));
      const where = policy.compile(request, { [policy.key.name]: { in: rows.map((row) => row[policy.key.name]) } } as Where);
      const found = await selectRows(tx, request, { unit, where: [where], isFreeForm: true, forCode: true });
      const items = await presentRows(tx, request, unit, found);
      const byKey = new Map(found.map((row, index) => [keyOf(row), items[index] as Item]));
      return rows.map((row) => byKey.get(String(row[policy.key.name])) as Item);
    };
  }

  /** Every item with its key. A malformed one is as missing as an unknown one. */
  #keyed(items: readonly ReadItem[]): KeyedItem[] {
    const missing = items.filter((item) => this.#tryKey(item) === undefined);
    if (missing.length > 0)
      throw coreErrors.not_found({
        errors: missing.map(({ at }) => ({ location: at, code: 'not_found', message: 'There is no such row.' })),
      });
    this.#requireVersions(items);
    return items.map((item) => ({ ...item, key: this.#tryKey(item) as RowKey }));
  }

  #reachable(items: readonly ReadItem[]): KeyedItem[] {
    return items.flatMap((item) => {
      const key = item.faults === undefined ? this.#tryKey(item) : undefined;
      return key === undefined ? [] : [{ ...item, key }];
    });
  }

  #tryKey({ key = '' }: ReadItem): RowKey | undefined {
    try {
      return this.#access.rowKey(key);
    } catch {
      return undefined;
    }
  }

  #one(item: ReadItem, options: WriteOptions): WriteOptions & { readonly key: RowKey } {
    refuseFaults(item);
    this.#requireVersions([item]);
    const { version } = item;
    return {
      ...options,
      via: 'bulk',
      sent: item.sent,
      key: this.#access.rowKey(item.key ?? ''),
      ...(version === undefined ? {} : { ifMatch: { any: false, versions: [String(version)] } }),
    };
  }

  #requireVersions(items: readonly ReadItem[]): void {
    const { policy, options } = this.#access;
    const name = policy.options.version as string | undefined;
    if (options.etag !== 'required' || name === undefined) return;
    const errors = items
      .filter(({ version }) => version === undefined)
      .map(({ at }) => ({ location: [...at, name], code: 'required', message: 'Give the version you read.' }));
    if (errors.length > 0) throw crudErrors.precondition_required({ detail: `Every item needs its "${name}".`, errors });
  }

  #answer({ reply }: Context, results: readonly BulkResult[]): object {
    reply.header('x-bulk-failed', String(results.filter(({ status }) => status >= 400).length));
    return { results };
  }
}

function refuseFaults({ faults }: ReadItem): void {
  if (faults !== undefined) throw coreErrors.validation_error({ errors: faults });
}

/** `{ items: […] }`: the rows in the order of the request. */
export function bulkItemsSchema(policy: Policy, item: Schema): Schema {
  const { $defs, ...items } = jsonSchemaOf(item, 'output') as ItemSchema;
  return bulkResult(policy, { type: 'object', properties: { items: { type: 'array', items } }, required: ['items'] }, $defs);
}

/** `{ results: […] }`: what each item came to. */
export function bulkResultsSchema(policy: Policy, item: Schema): Schema {
  const { $defs, ...data } = jsonSchemaOf(item, 'output') as ItemSchema;
  const result = {
    type: 'object',
    properties: {
      index: { type: 'integer', minimum: 0, description: 'The place of the item in the request.' },
      status: { type: 'integer' },
      data,
      code: { type: 'string', description: 'Of the error.' },
      detail: { type: 'string' },
      errors: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            location: { type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'integer' }] } },
            code: { type: 'string' },
            message: { type: 'string' },
          },
          required: ['location', 'code', 'message'],
        },
      },
    },
    required: ['index', 'status'],
  };
  return bulkResult(policy, { type: 'object', properties: { results: { type: 'array', items: result } }, required: ['results'] }, $defs);
}

type ItemSchema = JsonSchema & { readonly $defs?: Readonly<Record<string, JsonSchema>> };

/** One component for the bulk operations of a resource. */
function bulkResult(policy: Policy, result: JsonSchema, $defs: ItemSchema['$defs']): Schema {
  const name = `${pascal(policy.name)}BulkResult`;
  return jsonSchema({ $ref: `#/$defs/${name}`, $defs: { ...$defs, [name]: result } });
}
