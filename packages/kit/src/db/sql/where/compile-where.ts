import type { Dialect } from '../../dialect.ts';
import type { Model } from '../../declare/model.ts';
import type { ModelColumn } from '../model-statements.ts';
import type { Columns } from '../../declare/rows.ts';
import { columnsOf, evaluateWhere, isEvaluable, type ThreeValued } from './evaluate-where.ts';
import { decidedNode, type KnownRows } from './decided-where.ts';
import { movingNode, nodeAt, type TimeBound, timeBounds } from './moving-where.ts';
import { parseWhere } from './parse-where.ts';
import type { WhereNode } from './where-node.ts';
import { pushWhereValues, whereShape, whereValues, writeWhere } from './write-where.ts';
import type { RelatedColumns, Where, WhereRelations } from './where.ts';
import { type WhereTerm, whereTerms } from './where-terms.ts';
import { requireArguments } from '../../../options/read-options.ts';
import { aModel } from '../../../options/value-rule.ts';

const NO_BOUNDS: readonly TimeBound[] = Object.freeze([]);

/** A tree that was checked against its model, ready to be a part of a statement. */
export class CompiledWhere implements MovingWhere {
  readonly #node: WhereNode;
  #shape: string | undefined;

  constructor(node: WhereNode) {
    this.#node = node;
  }

  /** True when every row matches, false when none can, undefined when it depends on the row. */
  get constant(): boolean | undefined {
    return this.#node.node === 'constant' ? this.#node.value : undefined;
  }

  /** Without the values: two trees of one shape over one model and one `relations` have the same {@link text}. */
  get shape(): string {
    return (this.#shape ??= whereShape(this.#node));
  }

  /** Whether {@link matches} can answer: not with relations or `whereSql` inside. */
  get isEvaluable(): boolean {
    return isEvaluable(this.#node);
  }

  /** The columns that {@link matches} reads. */
  get columns(): ReadonlySet<ModelColumn> {
    return columnsOf(this.#node);
  }

  /** What indexes can do for it; see {@link WhereTerm}. */
  terms(dialect: Dialect): WhereTerm[] {
    return whereTerms(this.#node, dialect);
  }

  /** The condition over the table that the statement calls `alias` (SQL, as it stands there), its placeholders counted from `first`. */
  text(dialect: Dialect, alias: string, first: number): string {
    return writeWhere(this.#node, dialect, alias, first);
  }

  /** The values for {@link text}, in the order of its placeholders. */
  values(dialect: Dialect): unknown[] {
    return whereValues(this.#node, dialect);
  }

  /** Appends {@link values} to the parameters of a statement. */
  pushValues(dialect: Dialect, parameters: unknown[]): void {
    pushWhereValues(this.#node, dialect, parameters);
  }

  /** The condition, with its values appended to the parameters of a statement. */
  append(dialect: Dialect, alias: string, parameters: unknown[]): string {
    const text = this.text(dialect, alias, parameters.length + 1);
    this.pushValues(dialect, parameters);
    return text;
  }

  /** Whether a row as code has it matches; null is SQL's "unknown", which no statement takes for a match. */
  matches(row: Readonly<Record<string, unknown>>): ThreeValued {
    return evaluateWhere(this.#node, row);
  }

  /** The condition on rows whose relations lead to these. */
  deciding(known: KnownRows): CompiledWhere {
    return known.size === 0 ? this : new CompiledWhere(decidedNode(this.#node, known));
  }

  /** The condition at any time, from what its rule gives at a later one. Undefined where more than times that move with the clock differs. */
  moving(at: Date, later: CompiledWhere, laterAt: Date): MovingWhere | undefined {
    const node = movingNode(this.#node, later.#node, at, laterAt);
    if (node === undefined) return undefined;
    const bounds = timeBounds(node);
    return bounds.length === 0 ? this : { bounds, at: (time) => new CompiledWhere(nodeAt(node, time)) };
  }

  /** By itself it is the same at any time. */
  get bounds(): readonly TimeBound[] {
    return NO_BOUNDS;
  }

  at(): this {
    return this;
  }
}

/** A condition at any time. */
export interface MovingWhere {
  /** What it compares with the time. */
  readonly bounds: readonly TimeBound[];
  at(time: Date): CompiledWhere;
}

/**
 * Checks a tree against its model and compiles it. A name, operator or value that the model does not have is refused with `invalid_where`,
 * never skipped. `relations` says what relations lead to, and which rows of theirs count.
 */
// oxlint-disable-next-line typescript/no-empty-object-type -- no relations
export function compileWhere<C extends Columns, R extends RelatedColumns = {}>(
  model: Model<C>,
  where: Where<C, NoInfer<R>> | boolean,
  relations?: WhereRelations,
): CompiledWhere {
  requireArguments('compileWhere()', { model }, { model: aModel });
  return new CompiledWhere(parseWhere(model, where, relations));
}
