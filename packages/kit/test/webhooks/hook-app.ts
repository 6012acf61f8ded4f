import { afterAll, beforeAll } from 'vitest';
import type { User } from '../../src/auth/index.ts';
import type { Database } from '../../src/db/index.ts';
import { WebhookEndpointController, webhooks, type WebhookOptions } from '../../src/contrib/webhooks/index.ts';
import type { HandlerContext } from '../../src/http/index.ts';
import { describeDatabases, fakeClock, type FakeClock } from '../../src/testing/index.ts';
import { prepareAccountsAndKeys, startKeyApp, type Called, type KeyApp } from '../key-app.ts';
import { migrateWebhooks } from './outbox.ts';

/** Only what the application publishes may be subscribed to. */
export class CatalogController extends WebhookEndpointController {
  static override readonly availableEvents: readonly string[] = ['order.paid', 'order.refunded', 'invoice.sent'];
}

/** The tenant comes from the server's side of the request; a header stands for it here. */
export class TenantController extends WebhookEndpointController {
  static override readonly tenantField = 'tenant_key';
  override tenantKey({ request }: HandlerContext<unknown, unknown, unknown, unknown, User>): string | null {
    const tenant = request.headers['x-tenant'];
    return typeof tenant === 'string' ? tenant : null;
  }
}

/** Endpoints that belong to the tenant. */
export class OwnedController extends TenantController {
  static override readonly tenantOwned = true;
}

/** An app with accounts, API keys and webhooks, and its routes under /v2. */
export interface HookApp {
  readonly kit: KeyApp;
  readonly db: Database;
  readonly clock: FakeClock;
  /** A new user. */
  readonly person: () => Promise<User>;
  readonly call: (user: User, method: string, path: string, payload?: unknown, headers?: Record<string, string>) => Promise<Called>;
  /** A new endpoint of the user, as the API answers it. */
  readonly create: (user: User, fields?: object) => Promise<Called>;
}

let people = 0;

export function describeHookApp(name: string, options: WebhookOptions, define: (app: HookApp) => void): void {
  const clock = fakeClock('2030-01-01T00:00:00.000Z');
  describeDatabases(
    name,
    (database) => {
      let kit: KeyApp | undefined;
      const started = (): KeyApp => {
        if (kit === undefined) throw new Error('not started yet');
        return kit;
      };
      beforeAll(async () => {
        const controllers = { '/hooks': WebhookEndpointController, '/catalog': CatalogController, '/tenant': TenantController };
        const mount = { '/v2': { ...controllers, '/owned': OwnedController } };
        kit = await startKeyApp(database.db, { clock, modules: [webhooks({ jitter: false, ...options })], app: { mount } });
      });
      afterAll(() => kit?.app.close());
      const call: HookApp['call'] = (user, method, path, payload, headers = {}) =>
        started().call(method, `/v2${path}`, { 'x-act-as': user.username, ...headers }, payload);
      define({
        clock,
        call,
        get kit() {
          return started();
        },
        get db() {
          return database.db;
        },
        person: () => started().user(`person${++people}`),
        create: (user, fields = {}) => call(user, 'POST', '/hooks', { url: 'https://hooks.example.com/a', events: ['*'], ...fields }),
      });
    },
    {
      database: { clock },
      template: 'hook_app',
      async prepare(db) {
        await prepareAccountsAndKeys(db);
        await migrateWebhooks(db);
      },
    },
  );
}
