/** What a user is in a tenant. Return more if handlers need it: they get the object that `createApp({ membership })` returned. */
export interface Membership {
  /** For `hasRole('admin')`. */
  readonly roles: readonly string[];
  /** True: the tenant is suspended. Requests for it are 403 `tenant_suspended`, streams end, deliveries and jobs wait. Default: false. */
  readonly isSuspended?: boolean | undefined;
}
