import { limits } from '../declare/limits.ts';

export interface BulkOptions {
  /** `POST /bulk` */
  readonly create?: boolean;
  /** `POST /bulk-update` */
  readonly update?: boolean;
  /** `POST /bulk-delete` */
  readonly destroy?: boolean;
  /** `atomic`: any fault fails all. `partial`: each item has its own result, and the answer is 207. Default: `atomic`. */
  readonly mode?: 'atomic' | 'partial';
  /** Items of one request. Default: 100. */
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
