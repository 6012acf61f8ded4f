import type { App } from '../../app/index.ts';
import type { Clock } from '../../db/clock.ts';
import { service } from '../../di/index.ts';
import type { Log } from '../../http/index.ts';
import type { ThrottleStorage } from '../../throttle/index.ts';
import type { UserManagement } from './manage-users.ts';
import type { AccountsSettings } from './options.ts';

/** The module at run time: its settings, and what it uses of the app it is installed in. */
export class Accounts {
  readonly settings: AccountsSettings;
  #app: App | undefined;

  constructor(settings: AccountsSettings) {
    this.settings = settings;
  }

  installIn(app: App): void {
    this.#app = app;
  }

  get clock(): Clock {
    return this.#installed.clock;
  }

  get log(): Log {
    return this.#installed.log;
  }

  get throttleStorage(): ThrottleStorage {
    return this.#installed.throttleStorage;
  }

  get throttleRates(): App['settings']['throttleRates'] {
    return this.#installed.settings.throttleRates;
  }

  /** For the verbs that change users. */
  management(actor: UserManagement['actor'], requestId: string | null = null): UserManagement {
    const { audit, userChanges } = this.#installed.registry;
    return { clock: this.clock, passwordCost: this.settings.passwordCost, audit, userChanges, actor: actor ?? null, requestId };
  }

  get #installed(): App {
    if (this.#app === undefined) throw new Error('accounts() is not installed: add it to the modules of createApp.');
    return this.#app;
  }
}

/** Found by AccountController and by modules that log users in another way. */
export const accountsService = service<Accounts>('accounts');
