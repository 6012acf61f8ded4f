import type { Module } from '../../../kit/src/app/index.ts';
import { accounts, accountsOf, type AccountsOptions, createUser } from '../../../kit/src/contrib/accounts/index.ts';
import type { NewUser } from '../../../kit/src/contrib/accounts/users/manage-users.ts';
import { admin, type AdminRoles } from '../../../kit/src/admin/index.ts';
import { apiKeys } from '../../../kit/src/contrib/apikeys/index.ts';
import { audit } from '../../../kit/src/contrib/audit/index.ts';
import { type EventType, URLPolicy, webhooks, type Transport } from '../../../kit/src/contrib/webhooks/index.ts';
import { fakeClock, type FakeClock } from '../../../kit/src/testing/fake-clock.ts';
import { testApp, type TestApp, type TestAppOptions } from '../../../kit/src/testing/test-app.ts';
import { memoryStorage } from '../../../kit/src/throttle/index.ts';
import { products } from './products.ts';

export const PASSWORD = 'correct horse battery';
export const STAFF = 'olivia';

/** A shop with every module and a product table of its own, served with its admin site. */
export class Shop implements AsyncDisposable {
  readonly test: TestApp;
  readonly clock: FakeClock;
  readonly address: string;

  /** Addresses outside the site that its pages may ask. */
  readonly asked: readonly string[];

  private constructor(test: TestApp, clock: FakeClock, address: string, asked: readonly string[]) {
    this.test = test;
    this.clock = clock;
    this.address = address;
    this.asked = asked;
  }

  static async open(options: {
    readonly now: string;
    readonly transport?: Transport;
    readonly database?: NonNullable<TestAppOptions['database']>;
    readonly prefix?: `/${string}`;
    readonly roles?: AdminRoles;
    readonly viewAs?: boolean;
    readonly accounts?: AccountsOptions;
    /** Types of events that the shop declares. */
    readonly eventTypes?: readonly EventType[];
    /** Besides those of every shop. */
    readonly modules?: readonly Module[];
    readonly mount?: NonNullable<TestAppOptions['mount']>;
    readonly resources?: NonNullable<TestAppOptions['resources']>;
    /** Paths outside the admin site that its pages may ask. */
    readonly asked?: readonly string[];
  }): Promise<Shop> {
    const clock = fakeClock(options.now);
    const { prefix = '/admin', roles, viewAs = false, transport, database, modules = [], mount = {}, resources = [], asked = [] } = options;
    const test = await testApp({
      ...(database === undefined ? {} : { database }),
      title: 'Bean & Leaf',
      version: '2.4.0',
      clock,
      throttleStorage: memoryStorage(),
      mount,
      resources,
      modules: [
        accounts({ secondFactor: 'optional', secureCookies: false, passwordCost: { logN: 4, r: 8, p: 1 }, ...options.accounts }),
        audit(),
        webhooks({
          ...(options.eventTypes === undefined ? {} : { eventTypes: options.eventTypes }),
          jitter: false,
          urlPolicy: URLPolicy({ allowHttp: true, allowPrivateNetworks: true }),
          ...(transport === undefined ? {} : { transport }),
        }),
        apiKeys(),
        products(),
        ...modules,
        admin({ prefix, viewAs, ...(roles === undefined ? {} : { roles }) }),
      ],
    });
    const origin = await test.listen();
    const shop = new Shop(
      test,
      clock,
      `${origin}${prefix}/`,
      asked.map((path) => `${origin}${path}`),
    );
    await shop.newUser({ username: STAFF, email: 'olivia@beanleaf.example', is_staff: true });
    return shop;
  }

  get app(): TestApp['app'] {
    return this.test.app;
  }

  get db(): TestApp['app']['db'] {
    return this.test.app.db;
  }

  async newUser(user: Omit<NewUser, 'password'>): Promise<{ readonly id: string; readonly username: string }> {
    const management = accountsOf(this.app.db).management('setup');
    return createUser(this.db, { password: PASSWORD, ...user }, management);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.test.close();
  }
}
