import { definePlugin, type App, type Module } from 'kit';
import type { Database } from 'kit/db';
import { flagAdmin } from './admin.ts';
import { behindFlag, requireDeclaredFlag } from './behind-flag.ts';
import { flagChecks } from './checks.ts';
import { flagsCommand } from './commands.ts';
import { flagEnvironment } from './config.ts';
import { flagController } from './controller.ts';
import { flagErrors } from './errors.ts';
import { flagState } from './flags.ts';
import { initial } from './migrations/0001_initial.ts';
import { featureFlags as flagModel } from './models.ts';
import { readOptions, type FeatureFlagOptions } from './options.ts';

/** Feature flags: `createApp({ modules: [featureFlags({ flags: { new_checkout: 'The new checkout' } })] })`. */
export function featureFlags(options: FeatureFlagOptions): Module {
  const settings = readOptions(options, flagEnvironment());
  let database: Database | undefined;
  return definePlugin({
    name: 'feature_flags',
    // The request log and metrics, where installed, see the 404 of a closed route.
    after: ['metrics', 'tracing'],
    models: [flagModel],
    migrations: [initial],
    errors: flagErrors,
    middleware: [behindFlag()],
    mount: { [settings.path]: flagController(settings) },
    admin: flagAdmin,
    commands: [flagsCommand(settings)],
    checks: flagChecks(settings),
    onRoute: (route) => requireDeclaredFlag(route, settings),
    setup({ db, clock }: App) {
      flagState.bind(db, { settings, clock, percentages: new Map(), readAtMs: Number.NEGATIVE_INFINITY });
      database = db;
    },
    stop() {
      if (database !== undefined) flagState.release(database);
    },
  });
}
