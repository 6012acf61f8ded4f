import { resolveReference } from '../../db/declare/column.ts';
import type { Db } from '../../db/engine/db.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { type FieldError, isKitError } from '../../errors/kit-error.ts';
import { noteItems } from '../policy/note-items.ts';
import type { RowIntent } from './intent.ts';
import type { Pipeline } from './pipeline.ts';
import type { CrudRequest } from '../policy/crud-request.ts';
import { crudErrors } from '../declare/errors.ts';
import type { ReadItem } from '../input/item-reader.ts';
import { limits } from '../declare/limits.ts';
import { readKey } from '../parameters/parameter-value.ts';
import type { Edge, Policy } from '../policy/policy.ts';
import { every } from '../policy/row-scope.ts';
import type { PendingChange } from './record-changes.ts';
import { ofVersion } from './precondition.ts';
import type { RowKey } from './row-statements.ts';
import type { Item } from '../declare/item.ts';

/** A to-many relation whose rows are written with their parent. */
export interface NestedPlan {
  readonly name: string;
  readonly edge: Edge;
  readonly input: readonly string[];
  readonly missing: 'keep' | 'delete';
  readonly max: number;
}

/** The children that a request sent, by relation. A relation that was not sent is not there. */
export type NestedItems = ReadonlyMap<NestedPlan, readonly ReadItem[]>;

export function nestedPlans(policy: Policy): NestedPlan[] {
  return Object.entries(policy.options.nested ?? {}).flatMap(([name, given]) => {
    const edge = policy.edge(name);
    if (given === undefined || edge === undefined || edge.kind !== 'many') return [];
    const { input, missing = 'keep', max = limits.nested } = given;
    // A misspelt column is reported by start-up; here it must not hide that.
    const known = input.filter((column) => edge.target.statements.byName.has(column));
    return [{ name, edge, input: known, missing, max }];
  });
}

/** PUT deletes the children it does not name, and a plain read does not show them: a PUT must say that there are none. */
export function requiredByPut(plans: readonly NestedPlan[]): NestedPlan[] {
  return plans.filter(({ missing }) => missing === 'delete');
}

/** Writes the children of a row that is written itself, in its transaction: removes, changes, makes. Their own policy decides about them. */
export async function writeNested(pipeline: Pipeline, within: NestedWrite, nested: NestedItems): Promise<void> {
  for (const [plan, items] of nested) await new NestedWriter(pipeline, within, plan).write(items, within.isNew);
}

/** The transaction and the row that the children belong to. */
interface NestedWrite {
  readonly tx: Db;
  readonly request: CrudRequest;
  readonly parent: Item;
  readonly isNew: boolean;
  readonly changes: PendingChange[];
}

class NestedWriter {
  readonly #children: Pipeline;
  readonly #tx: Db;
  readonly #request: CrudRequest;
  readonly #plan: NestedPlan;
  readonly #options: { readonly via: 'nested'; readonly fixed: Item; readonly changes: PendingChange[] };

  constructor(pipeline: Pipeline, { tx, request, parent, changes }: NestedWrite, plan: NestedPlan) {
    this.#children = pipeline.of(plan.edge.target);
    this.#tx = tx;
    this.#request = request;
    this.#plan = plan;
    this.#options = { via: 'nested', fixed: { [plan.edge.column]: parent[pipeline.policy.key.name] }, changes };
  }

  async write(items: readonly ReadItem[], isNew: boolean): Promise<void> {
    const known = items.filter(({ key }) => key !== undefined);
    const fresh = items.filter(({ key }) => key === undefined);
    if (isNew && known.length > 0) throw this.#unknown(known.map(({ at }) => at));
    const keyed = known.map((item) => this.#keyed(item));
    noteItems(this.#request, items.length);
    if (!isNew && this.#plan.missing === 'delete') await this.#removeOthers(keyed);
    if (keyed.length > 0) await this.#update(keyed);
    if (fresh.length > 0)
      await this.#children.run(this.#tx, this.#request, { verb: 'create', ...this.#options, rows: fresh.map(withoutKey) });
  }

  /** A key that no child of this parent has, or that the caller does not see, names nothing. */
  async #update(keyed: readonly KeyedRow[]): Promise<void> {
    try {
      await this.#children.run(this.#tx, this.#request, { verb: 'update', ...this.#options, rows: keyed });
    } catch (error) {
      if (!isKitError(error, this.#children.policy.missing.code) || error.errors === undefined) throw error;
      throw this.#unknown(error.errors.map(({ location }) => location));
    }
  }

  /** Only children that the caller sees and the relation shows: a caller cannot remove what they could not read. */
  async #removeOthers(keyed: readonly KeyedRow[]): Promise<void> {
    const { edge } = this.#plan;
    const { target } = edge;
    const scope = await target.rows.visible(this.#request);
    const shown = target.rows.compile(this.#request, every([scope.where, ...(edge.where === undefined ? [] : [edge.where])]));
    const column = target.statements.column(edge.column);
    const found = await this.#children.statements.selectMany(
      this.#tx,
      { where: scope.where, compiled: shown },
      column,
      Object.values(this.#options.fixed),
      {
        limit: edge.limit + 1,
      },
    );
    if (found.length > edge.limit)
      throw crudErrors.too_many_related({
        detail: `There are too many ${this.#plan.name} to update here. Delete some through their own endpoint first.`,
        extensions: { rows_max: edge.limit },
      });
    const stored = (value: unknown) => String(target.key.encode(value));
    const kept = new Set(keyed.map(({ key }) => stored(key.value)));
    const others = found.filter((row) => !kept.has(stored(row[target.key.name])));
    if (others.length === 0) return;
    noteItems(this.#request, others.length);
    const items = others.map((row) => ({
      key: { column: target.key, value: row[target.key.name] },
      values: {},
      sent: [],
      at: ['body', this.#plan.name],
    }));
    await this.#children.run(this.#tx, this.#request, { verb: 'destroy', ...this.#options, rows: items });
  }

  #keyed({ values, sent, at, version, ...item }: ReadItem): KeyedRow {
    return { values, sent, at, ifMatch: ofVersion(version), key: this.#keyOf({ values, sent, at, ...item }) };
  }

  #keyOf({ key, at }: ReadItem): RowKey {
    const { key: column } = this.#plan.edge.target;
    const read = readKey(resolveReference(column.settings), key ?? '');
    if (read.fault !== undefined) throw this.#unknown([at]);
    return { column, value: read.value };
  }

  #unknown(places: readonly FieldError['location'][]): Error {
    const name = this.#plan.edge.target.key.name;
    return coreErrors.validation_error({
      errors: places.map((at) => ({ location: [...at, name], code: 'unknown_reference', message: 'There is no such row below this one.' })),
    });
  }
}

/** A child that is there already. */
type KeyedRow = RowIntent & { readonly key: RowKey };

function withoutKey({ values, sent, at }: ReadItem): RowIntent {
  return { values, sent, at };
}
