import type { ChangeLevel, DiffRuleId } from './rules.ts';

/** One difference between two documents, seen by a caller who was written against the older one. */
export interface DocumentChange {
  readonly id: DiffRuleId;
  readonly level: ChangeLevel;
  /** `GET /v1/orders`, `webhook order.paid`, or `document`. */
  readonly operation: string;
  /** The part of the operation: `query status__in`, `body items[].sku`, `200 items[].total`. */
  readonly place: string;
  /** The named schema that changed, where there is one: `Order.total`. */
  readonly component?: string | undefined;
  readonly message: string;
}

/** Reports one change of the operation that is being compared. */
export type Report = (id: DiffRuleId, place: string, message: string, component?: string) => void;
