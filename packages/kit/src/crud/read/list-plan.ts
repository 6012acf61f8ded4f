import type { ListRequest } from './list-query.ts';
import type { Shape } from './shape.ts';

/** What the parameters of a list ask for, checked, and what of the rows the caller gets. */
export interface ListPlan {
  readonly list: ListRequest;
  readonly shape: Shape;
  /** See `isFreeForm` of a selection. */
  readonly isFreeForm: boolean;
}
