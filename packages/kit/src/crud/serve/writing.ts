import type { Db } from '../../db/engine/db.ts';
import type { Where } from '../../db/sql/where/where.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { exchangeOf } from '../../http/serve/serve-route.ts';
import type { Item } from '../declare/item.ts';
import type { CrudRequest } from '../policy/crud-request.ts';
import { isKey, type Policy } from '../policy/policy.ts';
import { tagOf } from '../read/etag.ts';
import { unitFor } from '../read/list.ts';
import type { Context } from '../read/list-access.ts';
import { buildItems } from '../read/present.ts';
import { readOne } from '../read/read.ts';
import type { Shape } from '../read/shape.ts';
import { absentValue } from '../input/absent-value.ts';
import type { Asked, Intent, Present } from '../write/intent.ts';
import type { ReadItem } from '../input/item-reader.ts';
import { type NestedItems, requiredByPut, writeNested } from '../write/nested.ts';
import { requireOnce } from '../policy/give-once.ts';
import { type Precondition, preconditionOf } from '../write/precondition.ts';
import type { RowForm, RowKey } from '../write/row-statements.ts';
import type { Answering } from './answering.ts';
import type { Reading } from './reading.ts';
import type { ResourceAccess } from './resource-access.ts';
import { unwritableColumns } from '../policy/unwritable-columns.ts';

/** What a PUT writes, where some of it may depend on the row. */
interface Replacement extends Pick<Asked, 'valuesOfRow'> {
  readonly values: Item;
}

/** A row that was written, and what the caller gets of it. */
interface WrittenItem {
  readonly row: Item;
  readonly item: Item;
}

const WIRE: RowForm = Object.freeze({ as: 'wire' });
const AS_CODE: RowForm = Object.freeze({});

/** The operations that write one row: create, update, delete, restore and transitions. Each hands an intent to the pipeline. */
export class Writing {
  readonly #access: ResourceAccess;
  readonly #answering: Answering;
  readonly #reading: Reading;

  constructor(access: ResourceAccess, answering: Answering, reading: Reading) {
    this.#access = access;
    this.#answering = answering;
    this.#reading = reading;
  }

  readonly create = async (context: Context): Promise<Item> => {
    const request = await this.#access.request(context, 'create');
    const { shape } = await this.#access.singleShape(context, request);
    const { values, children } = this.#splitBody(context, request);
    const row = { values, sent: sentNames(context) };
    const written = await this.#written(context, request, shape, { verb: 'create', rows: [row] }, { children });
    const key = encodeURIComponent(String(written.row[this.#access.lookup.name]));
    return this.#answerWritten(context, shape, written, { location: `${relativeBase(exchangeOf(context.request).url)}${key}` });
  };

  readonly update = (context: Context): Promise<Item> => this.#change(context, 'update');

  readonly partialUpdate = (context: Context): Promise<Item> => this.#change(context, 'partialUpdate');

  async #change(context: Context, action: 'update' | 'partialUpdate'): Promise<Item> {
    const request = await this.#access.request(context, action);
    const { shape } = await this.#access.singleShape(context, request);
    const { values, children } = this.#splitBody(context, request);
    if (action === 'update') this.#requireNested(context);
    const replaces = action === 'update' && this.#access.resource.options.bodies === undefined;
    const { valuesOfRow, ...given }: Replacement = replaces ? await this.#replaced(context, request, values) : { values };
    this.#requirePrecondition(context);
    const row = { ...given, sent: sentNames(context), ...this.#keyed(context) };
    const written = await this.#written(context, request, shape, { verb: 'update', rows: [row] }, { valuesOfRow, children });
    return this.#answerWritten(context, shape, written);
  }

  /** The columns of a body, and what writes the children it has. */
  #splitBody(context: Context, request: CrudRequest): { readonly values: Item; readonly children: Asked['children'] } {
    const { nested, pipeline } = this.#access;
    const body = context.body as Item;
    if (nested.length === 0) return { values: body, children: undefined };
    const sent = nested.filter(({ name }) => body[name] !== undefined);
    if (sent.length === 0) return { values: body, children: undefined };
    const items: NestedItems = new Map(sent.map((plan) => [plan, body[plan.name] as readonly ReadItem[]]));
    const names = new Set(sent.map(({ name }) => name));
    return {
      values: Object.fromEntries(Object.entries(body).filter(([name]) => !names.has(name))),
      children: (tx, row, isNew, changes) => writeNested(pipeline, { tx, request, parent: row, isNew, changes }, items),
    };
  }

  #requireNested(context: Context): void {
    const body = context.body as Item;
    const missing = requiredByPut(this.#access.nested).filter(({ name }) => body[name] === undefined);
    if (missing.length > 0)
      throw coreErrors.validation_error({
        errors: missing.map(({ name }) => ({
          location: ['body', name],
          code: 'required',
          message: `Required: PUT deletes the ${name} that are not named. Use PATCH to leave them as they are.`,
        })),
      });
  }

  /**
   * PUT replaces every input column that this caller sees and may write; the others stay as they are. A column under a rule about the row is
   * decided once the row is known. Keys are never changed: one that is sent must be the row's.
   */
  async #replaced(context: Context, request: CrudRequest, body: Item): Promise<Replacement> {
    const { policy, input } = this.#access;
    const sent = sentNames(context);
    const values: Item = {};
    const keys: string[] = [];
    const now = request.clock.now();
    const view = await this.#access.view(request);
    const undecided: string[] = [];
    const absent: string[] = [];
    for (const name of input) {
      if (isKey(policy, name)) {
        if (body[name] !== undefined) keys.push(name);
        continue;
      }
      if (body[name] !== undefined) {
        values[name] = body[name];
        continue;
      }
      const shown = view.knows(name);
      if (shown === undefined || shown === 'null') continue;
      const written = sent.includes(name) ? true : ((await unwritableColumns(policy, request.context, [name])).get(name)?.verdict ?? true);
      if (written === false) continue;
      (shown === 'always' && written === true ? absent : undecided).push(name);
    }
    Object.assign(values, absentValues(policy, absent, now));
    const { column, value: addressed } = this.#access.key(context);
    const isAddressed = keys.every((name) => name === column.name);
    if (isAddressed) refuseOtherKeys(keys, body, { [column.name]: addressed });
    if (undecided.length === 0 && isAddressed) return { values };
    const valuesOfRow = async (row: Item): Promise<Item> => {
      refuseOtherKeys(keys, body, row);
      const closed = await unwritableColumns(policy, request.context, undecided, row);
      const decided: string[] = [];
      for (const name of undecided) {
        const visibleTo = policy.ruleOf(name)?.visibleTo;
        const isSeen = visibleTo === undefined || (await visibleTo.evaluate(request.context, row)) === true;
        if (isSeen && !closed.has(name)) decided.push(name);
      }
      return absentValues(policy, decided, now);
    };
    return { values, valuesOfRow };
  }

  readonly destroy = async (context: Context): Promise<void> => {
    const { policy, pipeline } = this.#access;
    const request = await this.#access.request(context, 'destroy');
    const { shape } = await this.#access.singleShape(context, request);
    this.#requirePrecondition(context);
    const db = policy.database(request);
    await this.#access.parentRows(context, request, db, true);
    const rows = [{ values: {}, sent: [], ...this.#keyed(context) }];
    await pipeline.run(db, request, { verb: 'destroy', via: 'single', rows, ...this.#access.asked(context, shape) });
  };

  readonly restore = async (context: Context): Promise<Item> => {
    const request = await this.#access.request(context, 'restore');
    const { shape } = await this.#access.singleShape(context, request);
    const rows = [{ values: {}, sent: [], ...this.#keyed(context) }];
    return this.#answerWritten(context, shape, await this.#written(context, request, shape, { verb: 'restore', rows }));
  };

  transition(name: string): (context: Context) => Promise<Item> {
    return async (context) => {
      const request = await this.#access.request(context, name);
      const { shape } = await this.#access.singleShape(context, request);
      this.#requirePrecondition(context);
      const transitionsOf = async (row: Item) => (await this.#reading.offeredTransitions(context, request, row)).map((each) => each.name);
      const rows = [{ values: {}, sent: [], ...this.#keyed(context) }];
      const intent = { verb: 'transition', rows, action: { name, input: context.body as unknown } } as const;
      return this.#answerWritten(context, shape, await this.#written(context, request, shape, intent, { transitionsOf }));
    };
  }

  action(name: string, hasResponse: boolean): (context: Context) => Promise<unknown> {
    return async (context) => {
      const request = await this.#access.request(context, name);
      const { shape } = await this.#access.singleShape(context, request);
      this.#requirePrecondition(context);
      const rows = [{ values: {}, sent: [], ...this.#keyed(context) }];
      const intent = { verb: 'action', rows, action: { name, input: context.body as unknown } } as const;
      let value: unknown;
      const written = await this.#written(context, request, shape, intent, { returned: (returned) => void (value = returned) });
      return hasResponse ? value : this.#answerWritten(context, shape, written);
    };
  }

  /** Runs a write and presents its row: inside the transaction where that needs statements of its own. */
  async #written(
    context: Context,
    request: CrudRequest,
    shape: Shape,
    intent: Pick<Intent, 'verb' | 'rows' | 'action'>,
    more: Partial<Asked> = {},
  ): Promise<WrittenItem> {
    const { policy, pipeline } = this.#access;
    let item: Item | undefined;
    const db = policy.database(request);
    const operation = intent.action?.name ?? intent.verb;
    const once = new Map<string, string | null>();
    // The parent in the address first.
    await this.#access.parentRows(context, request, db, true);
    const { fixed, asked } = this.#access.asked(context, shape);
    const present = this.#presentOne(request, shape, (built) => {
      requireOnce(policy, operation, once);
      item = built;
    });
    const [row] = await pipeline.run(db, request, { ...intent, via: 'single', fixed, asked: { ...asked, ...more, present, once } });
    return { row: row as Item, item: this.#answering.withOnce(context, policy, item as Item, once) };
  }

  #presentOne(request: CrudRequest, shape: Shape, done: (item: Item | undefined) => void): Present {
    const { policy } = this.#access;
    const unit = unitFor(shape, this.#versionExtra());
    const isDeep = unit.readsRelations;
    const build = async (db: Db, [row]: readonly Item[]): Promise<void> => {
      if (!isDeep) return done((await buildItems(db, request, unit, [row as Item]))[0]);
      const key = policy.rows.compile(request, { [policy.key.name]: row?.[policy.key.name] } as Where);
      return done((await readOne(db, request, unit, [key], true)).item);
    };
    return { isDeep, form: !isDeep && unit.isWire ? WIRE : AS_CODE, build };
  }

  #answerWritten(context: Context, shape: Shape, { row, item }: WrittenItem, headers?: Readonly<Record<string, string>>): Item {
    const [version] = this.#versionExtra();
    const tag = tagOf(this.#access.policy, shape, version === undefined ? undefined : unitFor(shape, [version]).extra(row, version));
    this.#answering.answerWith(context, item, tag, headers);
    return item;
  }

  #versionExtra(): readonly string[] {
    const { version } = this.#access.policy.options;
    return version === undefined ? [] : [version as string];
  }

  #keyed(context: Context): { readonly key: RowKey; readonly ifMatch: Precondition | undefined } {
    const { headers } = exchangeOf(context.request);
    const isChecked = this.#access.options.etag !== false;
    return { key: this.#access.key(context), ifMatch: isChecked ? preconditionOf(headers['if-match'] as string | undefined) : undefined };
  }

  #requirePrecondition(context: Context): void {
    if (this.#access.options.etag === 'required' && context.request.headers['if-match'] === undefined)
      throw coreErrors.precondition_required();
  }
}

function refuseOtherKeys(names: readonly string[], body: Item, row: Item): void {
  const textOf = (value: unknown) => String(value).toLowerCase();
  const other = names.filter((name) => textOf(body[name]) !== textOf(row[name]));
  if (other.length === 0) return;
  throw coreErrors.validation_error({
    errors: other.map((name) => ({ location: ['body', name], code: 'invalid', message: 'The key of a row cannot be changed.' })),
  });
}

/** What a PUT that leaves the columns out sets them to: their default or null. One without either is required. */
function absentValues(policy: Policy, columns: readonly string[], now: Date): Item {
  const values = columns.map((name) => [name, absentValue(policy.settingsOf(name), now)] as const);
  const missing = values.filter(([, value]) => value === undefined);
  if (missing.length > 0)
    throw coreErrors.validation_error({
      errors: missing.map(([name]) => ({ location: ['body', name], code: 'required', message: 'Required.' })),
    });
  return Object.fromEntries(values);
}

/** The members the client sent, before defaults were filled in. */
function sentNames(context: Context): string[] {
  const { body } = context.request as { readonly body?: unknown };
  return typeof body === 'object' && body !== null ? Object.keys(body) : [];
}

/** `orders/` of `/v1/orders?x=1`, nothing of `/v1/orders/`: what a reference relative to the address begins with. */
function relativeBase(url: string): string {
  const mark = url.indexOf('?');
  const path = mark === -1 ? url : url.slice(0, mark);
  return path.endsWith('/') ? '' : `${path.slice(path.lastIndexOf('/') + 1)}/`;
}
