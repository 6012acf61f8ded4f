import { ruleResult } from '../../auth/rights/rule-result.ts';
import type { ColumnSettings } from '../../db/declare/column.ts';
import { t } from '../../db/declare/column.ts';
import type { Model } from '../../db/declare/model.ts';
import { type CompiledWhere, compileWhere } from '../../db/sql/where/compile-where.ts';
import { notTrue } from '../../db/sql/where/not-true.ts';
import type { Where, WhereRelations } from '../../db/sql/where/where.ts';
import { SqlCondition } from '../../db/sql/where/where-sql.ts';
import type { ComputedField } from '../declare/computed-field.ts';
import type { Derived } from '../declare/derived.ts';
import type { Relations } from '../declare/relation.ts';
import type { Item } from '../declare/item.ts';

/** When conditions are looked at without a request. */
const NEVER = new Date(0);

/** A derived state of a model: for rows in JavaScript, for filters and statistics as a condition. Both from the same trees. */
export class DerivedState {
  readonly names: readonly string[];
  /** As if it were a column with these values. */
  readonly settings: ColumnSettings;
  readonly #derived: Derived;
  readonly #model: Model;
  readonly #relations: Relations;

  constructor(derived: Derived, model: Model, relations: Relations) {
    this.#derived = derived;
    this.#model = model;
    this.#relations = relations;
    this.names = derived.names;
    this.settings = t.enum(derived.names).settings;
  }

  /** The conditions of every state but the last. */
  conditions(now: Date): Where[] {
    const place = `state of resource(${this.#model.name})`;
    return this.names
      .slice(0, -1)
      .map((name) => ruleResult('rows', `"${name}" in a derived ${place}`, this.#derived.conditions[name]?.({ now })) as Where);
  }

  /** Columns of the row, and of to-one relations, that the conditions read; empty where a condition is wrong, which startup reports. */
  get requires(): readonly string[] {
    return [...new Set(this.#sample().flatMap((where) => this.#namesIn(where)))];
  }

  /** Why JavaScript cannot decide the conditions; undefined where it can. */
  problem(): string | undefined {
    try {
      const conditions = this.conditions(NEVER);
      if (conditions.some(hasSql)) return 'SQL cannot be evaluated in JavaScript.';
      const row = this.#emptyRow(conditions);
      for (const where of conditions) compileWhere(this.#model, where, this.#relation).matches(row);
      return undefined;
    } catch (error) {
      return (error as Error).message;
    }
  }

  #sample(): Where[] {
    try {
      return this.conditions(NEVER);
    } catch {
      return [];
    }
  }

  /** A row that has no values: every condition can be decided on it, or none. */
  #emptyRow(conditions: readonly Where[]): Item {
    const row: Item = {};
    for (const path of conditions.flatMap((where) => this.#namesIn(where))) {
      const [first = '', second] = path.split('.');
      if (second === undefined) row[first] = null;
      else row[first] = { ...(row[first] as Item | undefined), [second]: null };
    }
    return row;
  }

  /** The rows in one of these states. */
  isOneOf(names: readonly string[], now: Date): Where {
    const conditions = this.conditions(now);
    const isIn = (name: string): Where => {
      const place = this.names.indexOf(name);
      const own = conditions[place];
      return { and: [...(own === undefined ? [] : [own]), ...conditions.slice(0, place).map(notTrue)] } as Where;
    };
    return { or: names.filter((name) => this.names.includes(name)).map(isIn) } as Where;
  }

  /** The conditions of every state but the last, on rows that have the required columns. */
  compiled(now: Date): CompiledWhere[] {
    return this.conditions(now).map((where) => compileWhere(this.#model, where, this.#relation));
  }

  /** The states of rows that have the required columns. */
  of(rows: readonly Item[], now: Date): string[] {
    const compiled = this.compiled(now);
    return rows.map((row) => {
      const place = compiled.findIndex((condition) => condition.matches(row) === true);
      return this.names.at(place) as string;
    });
  }

  /** The field of a row. */
  get field(): ComputedField {
    const { response } = this.#derived;
    return { requires: this.requires, response, load: (rows: readonly Item[], { now }) => this.of(rows, now) };
  }

  /** Rows at the end of relations are joined already: those that the caller does not see are null. */
  readonly #relation: WhereRelations = (name, model) => {
    const relation = model === this.#model && Object.hasOwn(this.#relations, name) ? this.#relations[name] : undefined;
    return relation?.kind === 'one' ? { kind: 'one', model: relation.model() as unknown as Model, column: relation.column } : undefined;
  };

  #namesIn(where: unknown): string[] {
    if (Array.isArray(where)) return where.flatMap((each) => this.#namesIn(each));
    if (typeof where !== 'object' || where === null || where instanceof SqlCondition) return [];
    return Object.entries(where).flatMap(([name, inner]) => {
      if (name === 'and' || name === 'or' || name === 'not') return this.#namesIn(inner);
      if (!Object.hasOwn(this.#relations, name)) return [name];
      return columnsIn((inner as Item)['is']).map((column) => `${name}.${column}`);
    });
  }
}

function hasSql(where: unknown): boolean {
  if (where instanceof SqlCondition) return true;
  return typeof where === 'object' && where !== null && Object.values(where).some(hasSql);
}

/** The columns that a condition on one table names. */
function columnsIn(where: unknown): string[] {
  if (Array.isArray(where)) return where.flatMap(columnsIn);
  if (typeof where !== 'object' || where === null) return [];
  return Object.entries(where).flatMap(([name, inner]) => (name === 'and' || name === 'or' || name === 'not' ? columnsIn(inner) : [name]));
}
