import type { User } from '../../auth/principal.ts';

/** For whom is decided. `tenant` undefined: of whatever tenant, for programs that have none at hand. */
export interface Asker {
  readonly user: User | null;
  readonly tenant: string | null | undefined;
  readonly now: Date;
}

/** A caller with its groups: read once, used for every decision of a request. */
export interface KnownAsker extends Asker {
  readonly groups: readonly string[];
}
