import type { Membership } from '../../auth/people/membership.ts';
import type { Principal, User } from '../../auth/people/principal.ts';

/** Who makes the request: resolved once, so that throttles, permissions and handlers see one answer. */
export interface Caller<U extends User | null = User | null> {
  readonly user: U;
  readonly principal: null extends U ? Principal | null : Principal;
  /** What `createApp({ tenant })` found; null without a resolver. */
  readonly tenant: string | null;
  /** What `createApp({ membership })` returned for the tenant; null without one. */
  readonly membership?: Membership | null;
}
