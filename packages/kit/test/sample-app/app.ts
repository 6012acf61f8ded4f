import { createApp } from '../../src/app/assemble/create-app.ts';
import type { AppOptions } from '../../src/app/declare/options.ts';
import type { Authenticator } from '../../src/auth/request/authenticator.ts';
import { coreErrors } from '../../src/errors/core-errors.ts';
import { HealthController, deprecation, requestId, requestLog, securityHeaders, serverTiming } from '../../src/middleware/index.ts';
import { AccountController } from '../../src/contrib/accounts/index.ts';
import { ItemController } from './items.ts';
import { sampleModules } from './modules.ts';
import { OrderController } from './order-controller.ts';

const scopes: Readonly<Record<string, readonly string[]>> = { writer: ['orders:*'], reader: ['orders:read'] };

/** Who calls is what `X-Test-User` says; `bad` is a credential that was refused. */
const testUser: Authenticator = {
  name: 'test_user',
  challenge: 'Test',
  securityScheme: { type: 'apiKey', in: 'header', name: 'X-Test-User' },
  authenticate({ headers }) {
    const name = headers['x-test-user'];
    if (name === undefined) return null;
    if (typeof name !== 'string' || !/^[a-z]{1,20}$/.test(name)) throw coreErrors.invalid_credentials();
    return {
      user: { id: name, username: name, email: null, is_active: true, is_staff: false, is_superuser: false },
      scheme: 'test_user',
      scopes: scopes[name] ?? null,
    };
  },
};

/** The application the hostile-input and fuzz tests attack. */
export function sampleOptions(options: Partial<AppOptions>): AppOptions {
  return {
    authenticators: [testUser],
    middleware: [requestId(), requestLog(), securityHeaders(), serverTiming(), deprecation()],
    mount: {
      '/': { '/': HealthController },
      '/v1': { '/orders': OrderController, '/items': ItemController, '/account': AccountController },
    },
    modules: sampleModules,
    title: 'Sample',
    version: '1.0.0',
    bodyBytesMax: 256 * 1024,
    ...options,
  };
}

export const sampleApp = (options: Partial<AppOptions>) => createApp(sampleOptions(options));
