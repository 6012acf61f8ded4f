import { once } from 'node:events';
import { migrateApp, outdatedDatabases } from '../../app/data/migration-modules.ts';
import type { App } from '../../app/declare/module.ts';
import type { CliContext } from '../load/context.ts';
import type { CoreCommand } from '../load/core-command.ts';
import { listeningPlace, portNumber, type PlaceOptions } from '../terminal/listening-place.ts';
import { stopSignal } from '../terminal/stop-signal.ts';
import { keepClientCurrent, languageOf } from '../load/write-client.ts';
import type { FromApp, ToApp } from './messages.ts';

/** The app's own process under `kit dev`, which starts it again on every change and speaks with it over a channel. */
export const devServeCommand: CoreCommand = (command, context) => {
  command
    .requiredOption('--port <number>', 'port to listen on', portNumber)
    .requiredOption('--host <address>', 'address to listen on')
    .option('--client <file...>', 'clients to keep current')
    .action(async (options: PlaceOptions & { readonly client?: readonly string[] }) => {
      if (process.send === undefined) context.fail('This command is started by kit dev.');
      // Listened for from the start: without its parent, whenever that ends, nothing would stop this process.
      const orphaned = once(process, 'disconnect');
      await migrateAfterAsking(await (await context.bareApp()).openDatabases(), context);
      const app = await context.app();
      const url = await app.listen(listeningPlace(options, {}, (message) => context.fail(message)));
      tell({ type: 'ready', title: app.title, url, links: linksOf(app) });
      for (const file of options.client ?? []) await writeClient(app, file);
      for (const text of await app.monitor()) context.stderr.write(`${text}\n`);
      await Promise.race([stopSignal(), orphaned]);
    });
};

async function migrateAfterAsking(app: App, context: CliContext): Promise<void> {
  const outdated = await outdatedDatabases(app);
  if (outdated.length === 0) return;
  const migrations = outdated.flatMap(({ pending }) => pending);
  tell({ type: 'pending', migrations, database: outdated.map(({ url }) => url).join(', ') });
  const [{ migrate }] = (await once(process, 'message')) as [ToApp];
  if (!migrate) context.fail(`${migrations.length} pending: run npx kit migrate, or save a file to be asked again.`);
  const { applied } = await migrateApp(app);
  tell({ type: 'migrated', migrations: applied });
}

/** A client that cannot be written is reported; the app serves all the same. */
async function writeClient(app: App, file: string): Promise<void> {
  try {
    if (await keepClientCurrent(app, file, languageOf(file) ?? 'typescript')) tell({ type: 'client', file });
  } catch (error) {
    tell({ type: 'client', file, problem: (error as Error).message });
  }
}

function tell(message: FromApp): void {
  process.send?.(message);
}

/** Pages that a developer opens, of those that the app serves. Sites for people name themselves with `metadata: { site }`. */
function linksOf(app: App): (readonly [string, string])[] {
  return app.routes.flatMap(({ method, path, metadata }): (readonly [string, string])[] => {
    const { site } = metadata as { readonly site?: unknown };
    if (typeof site === 'string') return [[`${site} site`, path.endsWith('/') ? path : `${path}/`]];
    if (method === 'GET' && path.endsWith('/docs')) return [['reference', path]];
    return method === 'GET' && path.endsWith('/openapi.json') ? [['OpenAPI', path]] : [];
  });
}
