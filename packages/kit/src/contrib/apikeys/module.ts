import type { App, Module } from '../../app/declare/module.ts';
import { unboundKeysCheck } from './manage/unbound-keys-check.ts';
import { productionSecret } from '../../app/check/production-secret.ts';
import { StartUpError } from '../../app/check/start-up-error.ts';
import { userTableCheck } from '../../app/check/user-table-check.ts';
import type { Counter } from '../../observe/metric-registry.ts';
import { apiKeysAdmin } from './admin.ts';
import { ApiKeyAuth, ApiKeyBearer } from './request/authenticators.ts';
import { apiKeyCommand } from './commands.ts';
import { apiKeyErrors } from './errors.ts';
import { ownerChanged } from './verify/invalidation.ts';
import { apiKeyMigrations } from './migrations/all.ts';
import { apiKeys as keys, apiKeyUsage, serviceUsers } from './models.ts';
import { pepperFault, previousPepperFault, readApiKeyOptions, type ApiKeyOptions } from './options.ts';
import { serviceUserDeleted, serviceUserLeft, serviceUserSource } from './service/manage-service-users.ts';
import { serviceUserResource } from './service/resource.ts';
import { ownerLeft } from './manage/owner-left.ts';
import { apiKeysPortal } from './portal.ts';
import { apiKeyResource } from './resource.ts';
import { startKeyring, type ApiKeysInUse } from './request/use-api-keys.ts';
import { VERIFICATION_OUTCOMES } from './verify/verify.ts';

/**
 * Scoped API keys: both authentication classes and the table. Mount ApiKeyController for self-service.
 *
 * @example
 * ```ts
 * createApp({ modules: [accounts(), apiKeys()], mount: { '/v1': { '/api-keys': ApiKeyController } } });
 * ```
 */
export function apiKeys(options: ApiKeyOptions = {}): Module {
  const settings = readApiKeyOptions(options);
  let inUse: ApiKeysInUse | undefined;
  let verifications: Counter<'outcome'> | undefined;
  return {
    name: 'apikeys',
    models: [keys, apiKeyUsage, serviceUsers],
    resources: [apiKeyResource, serviceUserResource],
    migrations: apiKeyMigrations,
    authenticators: [new ApiKeyAuth(), new ApiKeyBearer()],
    errors: apiKeyErrors,
    commands: [apiKeyCommand],
    admin: apiKeysAdmin,
    portal: apiKeysPortal,
    checks: [
      userTableCheck,
      unboundKeysCheck,
      productionSecret('api_key_pepper', ({ settings: { apiKeyPepper } }) => settings.pepper !== undefined || apiKeyPepper !== undefined, {
        message: 'API keys are hashed without a pepper: whoever reads the database can look for keys.',
        hint: 'Set API_KEY_PEPPER, or apiKeys({ pepper: null }) where that is intended.',
      }),
    ],
    provides: () => ({
      userChanges: [ownerChanged, serviceUserDeleted],
      memberChanges: [ownerLeft, serviceUserLeft],
      serviceUsers: serviceUserSource,
    }),
    metrics(registry) {
      verifications = registry.counter({
        name: 'kit_apikeys_verifications_total',
        help: 'API keys that were presented, by outcome.',
        labels: { outcome: VERIFICATION_OUTCOMES },
      });
    },
    async setup(app) {
      if (app.users === null) {
        throw new StartUpError([
          {
            id: 'E011',
            message: 'apiKeys() needs to know the owners of keys.',
            hint: 'Add accounts() to the modules, or give createApp a `users` directory.',
          },
        ]);
      }
      const { apiKeyPepper: pepper, apiKeyPepperPrevious } = app.settings;
      const previousPepper = apiKeyPepperPrevious === 'none' ? null : apiKeyPepperPrevious;
      const pepperProblem = pepperFault(pepper) ?? previousPepperFault(previousPepper, pepper);
      if (settings.pepper === undefined && pepperProblem !== null) throw new StartUpError([{ id: 'E011', message: pepperProblem }]);
      const { users, clock, log, registry } = app;
      inUse = await startKeyring(app.db, settings, {
        users,
        clock,
        log,
        registry,
        pepper: pepper ?? null,
        previousPepper,
        verifications,
        routeScopes: () => routeScopes(app),
      });
    },
    async stop() {
      await inUse?.stop();
      inUse = undefined;
    },
  };
}

function routeScopes(app: App): readonly string[] {
  return [...new Set(app.routes.flatMap(({ scope }) => (scope === undefined ? [] : [scope])))].sort();
}
