import type { App } from '../../app/declare/module.ts';
import type { CommandContext } from '../../app/declare/command.ts';
import { CliFailure } from '../terminal/cli-failure.ts';
import { startProgress } from '../terminal/progress.ts';
import { readSecret } from '../terminal/secret-input.ts';
import { paint, type Terminal } from '../terminal/terminal.ts';

/** What core commands get beyond the context of modules. */
export interface CliContext extends CommandContext<App> {
  /** The app as the config file exports it; no database is open. */
  bareApp(): Promise<App>;
  readonly configFile: string | null;
  readonly cwd: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly terminal: Terminal;
  paint(style: Parameters<typeof paint>[0], text: string): string;
  /** Closes what any command opened. */
  close(): Promise<void>;
}

export interface ContextOptions {
  readonly terminal: Terminal;
  readonly environment: NodeJS.ProcessEnv;
  readonly configFile: string | null;
  readonly cwd: string;
  readonly load: () => Promise<App>;
  /** Read when asked: `--json` is known only after parsing. */
  readonly json: () => boolean;
}

/** Open, up to date and checked: a command that reads a table must not find it missing. */
async function openMigrated(app: App): Promise<App> {
  await app.openDatabases();
  // Loaded here: it brings migrations, models and the compiler of schemas, and a start without an app takes a third of the time.
  const { describeOutdated, outdatedDatabases } = await import('../../app/data/migration-modules.ts');
  const outdated = await outdatedDatabases(app);
  if (outdated.length > 0) throw new CliFailure(outdated.map(describeOutdated).join('\n'));
  return app.ready();
}

export function createContext({ terminal, environment, configFile, cwd, load, json }: ContextOptions): CliContext {
  let opened: Promise<App> | undefined;
  const { stdout, stderr } = terminal;
  return {
    bareApp: load,
    app() {
      opened ??= load().then(openMigrated);
      return opened;
    },
    print: (text) => void stdout.write(`${text}\n`),
    get json() {
      return json();
    },
    fail(message) {
      throw new CliFailure(message);
    },
    secret: (label) => readSecret(label, terminal),
    progress: (label, total) => startProgress(label, total, terminal),
    paint: (style, text) => paint(style, text, stdout),
    stdout,
    stderr,
    terminal,
    environment,
    configFile,
    cwd,
    async close() {
      const app = await load().catch(() => undefined);
      await app?.close();
    },
  };
}
