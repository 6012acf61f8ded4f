import { BoundedMap } from '../../db/bounded-map.ts';
import type { CompiledWhere } from '../../db/where/compile-where.ts';
import type { QueryValues } from '../../http/query-string.ts';
import type { ListRequest } from './list-query.ts';
import type { PageOptions } from '../declare/page-options.ts';
import type { Shape } from './shape.ts';

/** What the parameters of a list ask for, checked. */
export interface ListPlan {
  readonly list: ListRequest;
  readonly shape: Shape;
  /** See `isFreeForm` of a selection. */
  readonly isFreeForm: boolean;
  /** The conditions of the list, where they mean the same for every caller. */
  readonly where: readonly CompiledWhere[] | undefined;
}

/** Plans that are kept per controller: some 2 kB each. */
const PLANS_MAX = 500;
/** Characters. Longer parameters are read with every request. */
const KEY_MAX = 300;

/**
 * Plans of lists that were asked for before: pages of one list, and the lists of one view of an application, differ in nothing but the
 * cursor and the caller. Reading their parameters takes as long as reading ten rows.
 */
export class ListPlans {
  readonly #kept = new BoundedMap<string, ListPlan>(PLANS_MAX);

  /** Undefined for parameters that are not kept. `seen`: which columns the caller sees. */
  keyOf(given: QueryValues, { style }: PageOptions, seen: string): string | undefined {
    let key = seen;
    for (const name of Object.keys(given)) {
      const value = given[name];
      if (typeof value !== 'string') return undefined;
      // The place in the list is not a part of its plan. With the other style the name is refused.
      if (name !== 'cursor' || style !== 'cursor') key += `${name.length}:${name}${value.length}:${value}`;
    }
    return key.length > KEY_MAX ? undefined : key;
  }

  get(key: string | undefined): ListPlan | undefined {
    return key === undefined ? undefined : this.#kept.get(key);
  }

  keep(key: string | undefined, plan: ListPlan): void {
    if (key !== undefined && plan.list.isRepeatable) this.#kept.set(key, plan);
  }
}
