import { moduleState } from '../../app/assemble/module-state.ts';
import type { Registry } from '../../app/declare/registry.ts';
import type { UserDirectory } from '../../auth/people/user-directory.ts';
import type { Clock } from '../../db/clock.ts';

/** What links and their sessions need of the app. */
export interface PortalState {
  readonly clock: Clock;
  readonly registry: Pick<Registry, 'audit' | 'standings' | 'tenants'>;
  readonly users: UserDirectory;
  /** Where the portal is. */
  readonly prefix: string;
  /** Names of its pages. */
  readonly pages: readonly string[];
}

export const portalState = moduleState<PortalState>({ name: 'The links of the portal', setUp: 'add portal() to the modules of createApp' });
