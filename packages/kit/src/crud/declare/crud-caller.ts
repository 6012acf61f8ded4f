import type { Principal, User } from '../../auth/people/principal.ts';
import type { ServiceScope } from '../../di/container.ts';

/** Who asks, as policies see it: `rows: ({ user }) => …`. */
export interface CrudCaller<U extends User | null = User | null> {
  readonly user: U;
  readonly principal: Principal | null;
  readonly tenant: string | null;
  /** What is being done: `list`, `retrieve`, `create`, …; what grants decide by. */
  readonly action: string;
  /** The audience of the controller; null for the resource's own rules. */
  readonly audience: string | null;
  /** The class of the controller, for rules that depend on its statics; null for programs and the admin site. */
  readonly controller: object | null;
  readonly now: Date;
  readonly services: ServiceScope;
}
