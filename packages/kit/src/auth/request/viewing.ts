import type { Principal } from '../people/principal.ts';
import type { AuthRequest } from './authenticator.ts';

/**
 * Members of staff who look at the application as one of its users. The admin site provides it. Whatever accepts a session asks here who the request is
 * for: then every list, stream, cache and page decides by the user, and nothing by the member of staff.
 */
export interface Viewing {
  /**
   * The user that the member of staff looks as; null: the request is the member's own. Throws 403 `view_ended` where the request says that it is a view
   * and the view is over: it must not go on with the rights of the member.
   */
  principalOf(request: AuthRequest, staff: Principal): Promise<Principal> | null;
}
