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
