import { moduleState } from '../../../app/assemble/module-state.ts';
import type { App } from '../../../app/declare/module.ts';
import type { Registry } from '../../../app/declare/registry.ts';
import type { UserDirectory } from '../../../auth/people/user-directory.ts';
import type { Clock } from '../../../db/clock.ts';
import type { Db } from '../../../db/engine/db.ts';
import type { TenantSettings } from '../options.ts';

/** The module at run time: its settings, and what it uses of the app. */
export interface Tenants {
  readonly app: App;
  readonly settings: TenantSettings;
  readonly clock: Clock;
  readonly users: UserDirectory;
  readonly registry: Registry;
  /** The application's title, for mails. */
  readonly title: string;
}

export const tenantsState = moduleState<Tenants>({ name: 'Tenants', setUp: 'add tenants() to the modules of createApp' });

/** The tenants module of an application, found from its database or a transaction on it. */
export const tenantsIn = (db: Db): Tenants => tenantsState.of(db);

export function tenantsOfApp(app: App, users: UserDirectory, settings: TenantSettings): Tenants {
  const { clock, registry, title } = app;
  return Object.freeze({ app, settings, clock, users, registry, title });
}
