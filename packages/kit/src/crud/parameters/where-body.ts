import { isMembers } from '../../options/value-rule.ts';
import type { WhereOperator } from '../../db/sql/where/operators.ts';
import type { Where } from '../../db/sql/where/where.ts';
import type { FieldError } from '../../errors/kit-error.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import type { CrudCaller } from '../declare/crud-caller.ts';
import { type FilterParameters, type FilteredColumn, readCustomFilter, readJsonFilter } from './filter-parameters.ts';
import type { ControllerLimits } from '../declare/limits.ts';
import type { View } from '../policy/view.ts';

/**
 * Reads the filter tree of a QUERY body: the form of `Where`, restricted to what is declared as a filter and visible to the caller. Bounded
 * in depth and leaves; every fault has its place.
 */
export class WhereBody {
  readonly #filters: FilterParameters;
  readonly #limits: ControllerLimits;
  readonly #view: View;
  readonly #caller: () => CrudCaller;
  readonly #faults: FieldError[];
  #leaves = 0;

  constructor(filters: FilterParameters, limits: ControllerLimits, view: View, caller: () => CrudCaller, faults: FieldError[]) {
    this.#filters = filters;
    this.#limits = limits;
    this.#view = view;
    this.#caller = caller;
    this.#faults = faults;
  }

  read(tree: unknown): Promise<Where> {
    return this.#tree(tree, ['body', 'where'], 1, undefined);
  }

  /** The names a caller may use at this place: for hints. */
  #known(relation: string | undefined): string[] {
    const columns = [...this.#filters.columns.values()].filter((column) => this.#filters.isVisible(column, this.#view));
    const own = columns.filter((column) => column.relation === relation).map(({ column }) => column.name);
    if (relation !== undefined) return own;
    return [...own, ...new Set(columns.flatMap((column) => column.relation ?? [])), ...this.#filters.custom.keys()];
  }

  async #tree(tree: unknown, location: readonly (string | number)[], depth: number, relation: string | undefined): Promise<Where> {
    const { whereDepth } = this.#limits;
    if (depth > whereDepth) return this.#refuse(location, 'too_deep', `At most ${whereDepth} levels.`);
    if (!isMembers(tree)) return this.#refuse(location, 'invalid', 'Give an object of conditions.');
    const parts: Where[] = [];
    for (const [name, value] of Object.entries(tree)) parts.push(await this.#member(name, value, [...location, name], depth, relation));
    return { and: parts } as Where;
  }

  async #member(
    name: string,
    value: unknown,
    location: readonly (string | number)[],
    depth: number,
    relation: string | undefined,
  ): Promise<Where> {
    if (name === 'and' || name === 'or') {
      if (!Array.isArray(value) || value.length === 0) return this.#refuse(location, 'invalid', 'Give a list of conditions.');
      const parts: Where[] = [];
      for (const [index, each] of value.entries()) parts.push(await this.#tree(each, [...location, index], depth + 1, relation));
      return { [name]: parts } as Where;
    }
    if (name === 'not') return { not: await this.#tree(value, location, depth + 1, relation) } as Where;
    const column = this.#filters.columns.get(relation === undefined ? name : `${relation}.${name}`);
    // `folder.code` is also a key of the map: at the top level it would be read as a column of the row itself.
    if (column !== undefined && column.relation === relation && this.#filters.isVisible(column, this.#view))
      return this.#column(column, value, location);
    if (relation === undefined) {
      const custom = this.#filters.custom.get(name);
      if (custom !== undefined) {
        this.#countLeaf(location);
        return (await readCustomFilter(custom, value, location, this.#filters.policy, this.#caller(), this.#faults)) ?? NOTHING;
      }
      if (this.#known(undefined).includes(name)) {
        if (isMembers(value) && isMembers(value['is']) && Object.keys(value).length === 1)
          return { [name]: { is: await this.#tree(value['is'], [...location, 'is'], depth + 1, name) } };
        return this.#refuse(location, 'invalid', 'A relation takes { "is": { … } } with conditions on its columns.');
      }
    }
    return this.#refuse(location, 'unknown_field', `Unknown filter.${didYouMean(name, this.#known(relation))}`);
  }

  #column(column: FilteredColumn, value: unknown, location: readonly (string | number)[]): Where {
    if (value === null) return this.#leaf(column, 'isnull', true, location);
    if (!isMembers(value)) return this.#leaf(column, 'eq', value, location);
    const parts = Object.entries(value).map(([operator, operand]) => this.#leaf(column, operator, operand, [...location, operator]));
    return parts.length === 0 ? this.#refuse(location, 'invalid', 'Give an operator.') : ({ and: parts } as Where);
  }

  #leaf(column: FilteredColumn, operator: string, value: unknown, location: readonly (string | number)[]): Where {
    if (!this.#countLeaf(location)) return NOTHING;
    if (!(column.operators as readonly string[]).includes(operator))
      return this.#refuse(location, 'unknown_operator', `Not declared here. Known: ${column.operators.join(', ')}.`);
    const read = readJsonFilter(column, operator as WhereOperator, value, this.#limits.listValues, this.#caller().now);
    return 'fault' in read ? this.#refuse(location, 'invalid', `It ${read.fault}.`) : read.where;
  }

  #countLeaf(location: readonly (string | number)[]): boolean {
    const { whereLeaves } = this.#limits;
    this.#leaves += 1;
    if (this.#leaves === whereLeaves + 1) this.#faults.push({ location, code: 'too_many', message: `At most ${whereLeaves} conditions.` });
    return this.#leaves <= whereLeaves;
  }

  #refuse(location: readonly (string | number)[], code: string, message: string): Where {
    if (this.#faults.length < 100) this.#faults.push({ location, code, message });
    return NOTHING;
  }
}

/** Stands for a condition that was refused; the request is, too. */
const NOTHING = { or: [] } as unknown as Where;
