import { describe, expect, test } from 'vitest';
import { createApp } from '../../app/assemble/create-app.ts';
import { StartUpError } from '../../app/check/start-up-error.ts';
import type { ControllerClass } from '../../http/compile/controller.ts';
import { isStaff } from '../../permissions/built-ins.ts';
import { accounts } from '../accounts/module.ts';
import { ApiKeyController } from './controller.ts';
import { apiKeys } from './module.ts';

function faultsOf(controller: ControllerClass): string[] {
  try {
    createApp({
      database: 'sqlite::memory:',
      log: { level: 'silent' },
      modules: [accounts(), apiKeys()],
      mount: { '/v1': { '/api-keys': controller } },
    });
    return [];
  } catch (error) {
    if (!(error instanceof StartUpError)) throw error;
    return error.faults.map(({ id, message, hint }) => `${id} ${message} ${hint ?? ''}`.trim());
  }
}

describe('the options of a subclass of ApiKeyController', () => {
  test('are taken as statics', () => {
    class Keys extends ApiKeyController {
      static override readonly grantableScopes = ['orders:read', 'invoices:*'];
      static override readonly allowRateLimit = true;
      static override readonly permission = isStaff;
      static describeKey(): string {
        return 'a function of your own is no option';
      }
    }
    class OwnKeys extends Keys {
      static override readonly grantableScopes = ['orders:read'];
    }
    expect(faultsOf(Keys)).toEqual([]);
    expect(faultsOf(OwnKeys)).toEqual([]);
    const mount = { '/v1': { '/api-keys': Keys } };
    const { warnings } = createApp({ database: 'sqlite::memory:', log: { level: 'silent' }, modules: [accounts(), apiKeys()], mount });
    expect(warnings.filter(({ message }) => message.includes('api_keys'))).toEqual([]);
  });

  test('as bare attributes stop the start, spelt right or not', () => {
    class Bare extends ApiKeyController {
      grantableScopes = ['orders:read'];
      allow_rate_limit = true;
    }
    expect(faultsOf(Bare)).toEqual([
      'E002 Bare: the option "grantableScopes" is a bare class attribute and would be ignored. Write "static readonly grantableScopes = …".',
      'E002 Bare: the option "allow_rate_limit" is a bare class attribute and would be ignored. Write "static readonly allowRateLimit = …".',
    ]);
  });

  test('of an unknown name stop the start, with the one that was meant', () => {
    class Misspelt extends ApiKeyController {
      static readonly grantable_scopes = ['orders:read'];
      static readonly allowRateLimits = true;
      static readonly scopes = ['orders:read'];
    }
    expect(faultsOf(Misspelt)).toEqual([
      'E001 Misspelt: unknown option "grantable_scopes". Did you mean "grantableScopes"?',
      'E001 Misspelt: unknown option "allowRateLimits". Did you mean "allowRateLimit"?',
      'E001 Misspelt: unknown option "scopes". Known: tags, permission, throttles, errors, middleware, deprecated, description, grantableScopes, allowRateLimit, live.',
    ]);
  });

  test.each([
    ['orders:read', 'grantableScopes is "orders:read"; use a list: [ … ].'],
    [['orders'], 'grantableScopes[0] is "orders"; use a scope: "*", "orders:*" or "orders:read".'],
    [[['orders:read']], 'grantableScopes[0] is a list; use a scope: "*", "orders:*" or "orders:read".'],
    [new Set(['orders:read']), 'grantableScopes is an object of another kind; use a list: [ … ].'],
  ])('grantableScopes = %o stops the start', (grantableScopes, sentence) => {
    const Wrong = Object.assign(class Wrong extends ApiKeyController {}, { grantableScopes });
    expect(faultsOf(Wrong as unknown as ControllerClass)).toEqual([`E011 Wrong: ${sentence}`]);
  });

  test('a wrong value that a subclass shadows is reported too', () => {
    const Base = Object.assign(class Base extends ApiKeyController {}, { allowRateLimit: 'no' });
    class Keys extends (Base as unknown as typeof ApiKeyController) {
      static override readonly allowRateLimit = false;
    }
    expect(faultsOf(Keys)).toEqual(['E011 Keys: allowRateLimit is "no"; use true or false.']);
  });
});
