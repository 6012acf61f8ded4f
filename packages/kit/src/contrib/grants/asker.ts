import type { User } from '../../auth/principal.ts';

/** The caller that a decision is about. `tenant` undefined: any tenant, for programs that act without one. */
export interface Asker {
  readonly user: User | null;
  readonly tenant: string | null | undefined;
  readonly now: Date;
}

/** A caller with its groups: read once, used for every decision of a request. */
export interface KnownAsker extends Asker {
  readonly groups: readonly string[];
}
