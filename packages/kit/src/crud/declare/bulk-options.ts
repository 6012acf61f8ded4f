export interface BulkOptions {
  /** `POST /bulk` */
  readonly create?: boolean;
  /** `POST /bulk-update` */
  readonly update?: boolean;
  /** `POST /bulk-delete` */
  readonly destroy?: boolean;
  /** `atomic`: any fault fails all. `partial`: each item has its own result, and the answer is 207. `atomic` unless given. */
  readonly mode?: 'atomic' | 'partial';
  /** Items of one request; 100 unless given. */
  readonly max?: number;
}
