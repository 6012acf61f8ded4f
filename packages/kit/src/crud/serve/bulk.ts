import type { Db } from '../../db/engine/db.ts';
import type { Where } from '../../db/sql/where/where.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import type { JsonSchema, Schema } from '../../http/declare/schema.ts';
import { jsonSchemaOf } from '../../http/declare/schema.ts';
import type { BulkBody } from '../input/bulk-body.ts';
import type { FieldError, KitError } from '../../errors/kit-error.ts';
import type { Asked, Intent, RowIntent } from '../write/intent.ts';
import { itemError } from '../input/item-error.ts';
import { ofVersion } from '../write/precondition.ts';
import type { PendingChange } from '../write/record-changes.ts';
import type { CrudRequest } from '../policy/crud-request.ts';
import type { BulkOptions } from '../options/bulk-options.ts';
import type { FaultsBeside } from './faults-beside.ts';
import type { ResourceAccess } from './resource-access.ts';
import type { ReadItem } from '../input/item-reader.ts';
import { noteItems } from '../write/note-items.ts';
import { unitFor } from '../read/list.ts';
import type { Context } from '../read/list-access.ts';
import { pascal } from '../declare/names.ts';
import type { Policy } from '../policy/policy.ts';
import { buildItems } from '../read/present.ts';
import { presentRows, selectRows } from '../read/read.ts';
import { missingAt } from '../write/steps.ts';
import type { RowKey } from '../write/row-statements.ts';
import type { Item } from '../declare/item.ts';
import type { Shape } from '../read/shape.ts';

/** What a row of a partial bulk write came to. */
export type BulkResult =
  | { readonly index: number; readonly status: number; readonly data?: Item }
  | {
      readonly index: number;
      readonly status: number;
      readonly code: string;
      readonly detail: string;
      readonly errors?: readonly FieldError[];
    };

interface Prepared {
  readonly request: CrudRequest;
  readonly db: Db;
  readonly body: BulkBody;
  readonly intent: Pick<Intent, 'via' | 'fixed'> & { readonly asked: Asked };
  readonly present: (tx: Db, rows: readonly Item[]) => Promise<Item[]>;
}

type BulkVerb = 'create' | 'update' | 'destroy';
const ACTION: Readonly<Record<BulkVerb, string>> = { create: 'create', update: 'partialUpdate', destroy: 'destroy' };
const STATUS: Readonly<Record<BulkVerb, number>> = { create: 201, update: 200, destroy: 204 };

/** `POST /bulk`, `/bulk-update`, `/bulk-delete`: many rows in one transaction, results in the order of the request. */
export class BulkOperations {
  readonly #access: ResourceAccess;
  readonly #faultsBeside: FaultsBeside;
  readonly #isPartial: boolean;

  constructor(access: ResourceAccess, faultsBeside: FaultsBeside, { mode }: Required<BulkOptions>) {
    this.#access = access;
    this.#faultsBeside = faultsBeside;
    this.#isPartial = mode === 'partial';
  }

  readonly create = (context: Context): Promise<object | undefined> => this.#write(context, 'create');

  readonly update = (context: Context): Promise<object | undefined> => this.#write(context, 'update');

  readonly destroy = (context: Context): Promise<object | undefined> => this.#write(context, 'destroy');

  async #write(context: Context, verb: BulkVerb): Promise<object | undefined> {
    const prepared = await this.#prepare(context, ACTION[verb]);
    if (this.#isPartial) {
      const results = await this.#partial(await this.#judged(context, prepared, verb), verb);
      this.#access.admitWithoutObject(context);
      return this.#answer(context, results);
    }
    const { request, db, body, intent, present } = prepared;
    const rows = verb === 'create' ? body.items.map(newRow) : this.#keyed(body.items);
    let items: readonly Item[] = [];
    const build = async (tx: Db, written: readonly Item[]): Promise<void> => void (items = await present(tx, written));
    const asked: Asked = verb === 'destroy' ? intent.asked : { ...intent.asked, present: { isDeep: true, build } };
    await this.#access.pipeline.run(db, request, { ...intent, verb, rows, asked });
    return verb === 'destroy' ? undefined : { items };
  }

  /** Items that the schema refuses, with what the rules of the resource say of the rest of them. */
  async #judged(context: Context, prepared: Prepared, verb: BulkVerb): Promise<Prepared> {
    const { body, request } = prepared;
    if (verb === 'destroy' || this.#access.resource.options.validate === undefined) return prepared;
    const { items: given } = context.request.body as { readonly items: readonly unknown[] };
    const items: ReadItem[] = [];
    for (const [index, item] of body.items.entries()) {
      const placed = [{ given: given?.[index], at: item.at }];
      const action = verb === 'create' ? 'create' : 'partialUpdate';
      const more = item.faults === undefined ? [] : await this.#faultsBeside.ofItems(context, request, action, placed);
      items.push(item.faults === undefined ? item : { ...item, faults: [...item.faults, ...more] });
    }
    return { ...prepared, body: { ...body, items } };
  }

  /** Each item is an intent in a savepoint of its own; what is wrong with one stays with it. A fault of the server fails all. */
  async #partial({ request, db, body, intent, present }: Prepared, verb: BulkVerb): Promise<BulkResult[]> {
    const { pipeline } = this.#access;
    return pipeline.together(db, async (tx, recorded) => {
      if (verb !== 'create') await this.#lock(tx, request, body.items, intent);
      const results: BulkResult[] = [];
      for (const [index, item] of body.items.entries()) {
        const changes: PendingChange[] = [];
        try {
          const data = await tx.transaction(async (savepoint) => {
            const row = verb === 'create' ? checked(item) : this.#one(item);
            const asked = { ...intent.asked, ownsTransaction: true };
            const written = await pipeline.run(savepoint, request, { ...intent, verb, rows: [row], asked, changes });
            return verb === 'destroy' ? undefined : (await present(savepoint, written))[0];
          });
          recorded.push(...changes);
          results.push({ index, status: STATUS[verb], ...(data === undefined ? {} : { data }) });
        } catch (error) {
          const fault = itemError(error, item.at, item.valuesAt);
          if (fault === undefined || fault.status >= 500) throw error;
          results.push(failed(index, fault));
        }
      }
      return results;
    });
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

  async #prepare(context: Context, action: string): Promise<Prepared> {
    const access = this.#access;
    const body = context.body as BulkBody;
    const request = await access.request(context, action);
    noteItems(request, body.items.length);
    const { shape } = await access.singleShape(context, request, body.items.length);
    const db = access.policy.database(request);
    await access.parentRows(context, request, db, true);
    return { request, db, body, intent: { ...access.asked(context, shape), via: 'bulk' }, present: this.#presenter(request, shape) };
  }

  #presenter(request: CrudRequest, shape: Shape): Prepared['present'] {
    const { policy } = this.#access;
    const unit = unitFor(shape, [policy.key.name]);
    return async (tx, rows) => {
      if (!unit.readsRelations) return buildItems(unit, rows, request);
      const keyOf = (row: Item) => String(unit.extra(row, policy.key.name));
      const where = policy.rows.compile(request, { [policy.key.name]: { in: rows.map((row) => row[policy.key.name]) } } as Where);
      const found = await selectRows(tx, request, { unit, where: [where], isFreeForm: true, forCode: true });
      const items = await presentRows(tx, request, unit, found);
      const byKey = new Map(found.map((row, index) => [keyOf(row), items[index] as Item]));
      return rows.map((row) => byKey.get(String(row[policy.key.name])) as Item);
    };
  }

  /** Every item with its key. A malformed one is as missing as an unknown one. */
  #keyed(items: readonly ReadItem[]): RowIntent[] {
    const missing = items.filter((item) => this.#tryKey(item) === undefined);
    if (missing.length > 0)
      throw missingAt(
        this.#access.policy,
        missing.map(({ at }) => at),
      );
    this.#requireVersions(items);
    return items.map((item) => this.#keyedRow(item, this.#tryKey(item) as RowKey));
  }

  #keyedRow({ values, sent, at, valuesAt, version }: ReadItem, key: RowKey): RowIntent {
    return { key, values, sent, at, ...(valuesAt === undefined ? {} : { valuesAt }), ifMatch: ofVersion(version) };
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
    return this.#keyed([item])[0] as RowIntent;
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

  #answer({ reply }: Context, results: readonly BulkResult[]): object {
    reply.header('x-bulk-failed', String(results.filter(({ status }) => status >= 400).length));
    return { results };
  }
}

function newRow({ values, sent, at }: ReadItem): RowIntent {
  return { values, sent, at };
}

function checked(item: ReadItem): RowIntent {
  if (item.faults !== undefined) throw coreErrors.validation_error({ errors: item.faults });
  return newRow(item);
}

function failed(index: number, { status, code, detail, errors }: KitError): BulkResult {
  return { index, status, code, detail, ...(errors === undefined ? {} : { errors }) };
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
