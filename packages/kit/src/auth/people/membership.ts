/** What a user is in a tenant. Return more if handlers need it: they get the object that `createApp({ membership })` returned. */
export interface Membership {
  /** For `hasRole('admin')`. */
  readonly roles: readonly string[];
}
