import { Command, CommanderError } from 'commander';
import type { App } from '../app/declare/module.ts';
import { isKitError } from '../errors/kit-error.ts';
import { CliFailure } from './terminal/cli-failure.ts';
import { addDotenv } from './load/dotenv.ts';
import { CORE_COMMANDS } from './commands/core-commands.ts';
import { createContext, type CliContext } from './load/context.ts';
import { explainFailure, missingModule } from './terminal/explain-failure.ts';
import { findConfig, missingConfig } from './load/find-config.ts';
import { loadApp, type ImportConfig } from './load/load-app.ts';
import { paint, type Terminal } from './terminal/terminal.ts';

export interface ProgramRun {
  /** Without the program's own name. */
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly terminal: Terminal;
  readonly version: string;
  /** How the config file is imported; tests that run many commands in one process import it again for each. */
  readonly importConfig?: ImportConfig;
}

/** Command lines that never need the app, by their first word: its file is not even imported. */
const WITHOUT_APP: ReadonlySet<string> = new Set(['new', 'dev', '--version', '-V']);

/** Commands whose log is their output. */
const SERVING: readonly string[] = ['start', 'dev', 'dev-serve'];

/** The app's log must not mix with a command's output; a server's log is its output. */
export function keepLogApart(argv: readonly string[], environment: NodeJS.ProcessEnv): void {
  if (SERVING.some((name) => argv.includes(name))) return;
  environment['LOG_DESTINATION'] ??= 'stderr';
  environment['LOG_LEVEL'] ??= 'warn';
}

/** Runs one command line; answers its exit code: 0 done, 1 failed, 2 the command line was wrong. */
export async function runProgram(run: ProgramRun): Promise<number> {
  let context: CliContext | undefined;
  try {
    const config = findConfig(run.cwd, configArgument(run.argv));
    // Loaded before parsing, because the app's modules bring commands of their own. Whether a failure matters is decided
    // by the command: help and doctor work without an app.
    const loading = appOf(run, config);
    const app = await loading.catch(() => undefined);
    const program = createProgram(run);
    context = createContext({
      terminal: run.terminal,
      environment: run.environment,
      configFile: config,
      cwd: run.cwd,
      load: () => loading,
      json: () => program.opts<{ json?: boolean }>().json === true,
    });
    await addCommands(program, context, app, run.argv);
    // A command of a module that is unknown only because the app cannot be loaded: why it cannot is the whole message.
    if (app === undefined && !asksForHelp(run) && missingModule(commandOf(run.argv)) !== undefined) await loading;
    await program.parseAsync([...run.argv], { from: 'user' }).catch(async (error: unknown) => {
      // Without the app its modules' commands are unknown: the reason is why it could not be loaded.
      if (error instanceof CommanderError && error.code === 'commander.unknownCommand') {
        await loading;
        const isKnown = program.commands.some((command) => command.name() === program.args[0]);
        const hint = isKnown ? undefined : missingModule(program.args[0]);
        if (hint !== undefined && isJson(run)) error.message += `. ${hint}`;
        else if (hint !== undefined) run.terminal.stderr.write(`${hint}\n`);
      }
      throw error;
    });
    return 0;
  } catch (error) {
    return report(error, run, isJson(run));
  } finally {
    await context?.close().catch((error: unknown) => report(error, run, false));
  }
}

async function appOf(run: ProgramRun, config: string | null): Promise<App> {
  if (WITHOUT_APP.has(commandOf(run.argv) ?? run.argv[0] ?? '')) throw new CliFailure('This command does not load the app.');
  addDotenv(config, run.environment);
  if (config === null) throw new CliFailure(missingConfig(run.cwd));
  return loadApp(config, run.importConfig);
}

/** Asked of the arguments themselves: a command line that cannot be parsed is reported as well. */
function isJson({ argv }: ProgramRun): boolean {
  return argv.includes('--json');
}

/** Answered without an app, also below a command that only an app has. */
function asksForHelp({ argv }: ProgramRun): boolean {
  return ['-h', '--help', '-V', '--version'].some((option) => argv.includes(option));
}

function createProgram(run: ProgramRun): Command {
  const { terminal, version } = run;
  const program = new Command('kit');
  return program
    .description('Runs and manages an app built with kit. The app is the default export of kit.config.ts.')
    .option('-c, --config <file>', 'the app, instead of the nearest kit.config.ts')
    .option('--json', 'print one JSON document instead of text')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'explain a command')
    .commandsGroup('Core commands:')
    .helpCommand('help [command]', 'explain a command')
    .showSuggestionAfterError()
    .showHelpAfterError('(kit --help lists the commands)')
    .configureOutput({
      writeOut: (text) => void terminal.stdout.write(text),
      // As JSON it is reported at the end.
      writeErr: (text) => void (isJson(run) || terminal.stderr.write(text)),
      outputError: (text, write) => write(paint('red', text, terminal.stderr)),
    })
    .configureHelp({ styleTitle: (title) => paint('bold', title, terminal.stdout) })
    .exitOverride();
}

async function addCommands(program: Command, context: CliContext, app: App | undefined, argv: readonly string[]): Promise<void> {
  // The help of the program lists the arguments of every command; its version takes none.
  const isHelp = ['help', undefined].includes(commandOf(argv)) && !WITHOUT_APP.has(argv[0] ?? '');
  for (const { name, summary, hidden = false, load } of CORE_COMMANDS) {
    const command = subcommand(program, name, summary, hidden);
    if (isHelp || argv.includes(name)) (await load())(command, context);
  }
  const known = new Set(CORE_COMMANDS.map(({ name }) => name));
  for (const module of app?.modules ?? []) {
    for (const { name, summary, configure } of module.commands ?? []) {
      if (known.has(name)) throw new CliFailure(`The module "${module.name}" brings a command "${name}", which exists already.`);
      known.add(name);
      configure(subcommand(program, name, summary).helpGroup(`Commands of ${module.name}:`), context);
    }
  }
}

function subcommand(program: Command, name: string, summary: string, hidden = false): Command {
  return program
    .command(name, { hidden })
    .summary(summary)
    .description(summary)
    .showSuggestionAfterError()
    .showHelpAfterError(`(kit ${name} --help explains the command)`)
    .exitOverride();
}

/** `--config` is needed before the program can be parsed: in every form that the parser takes, the last one counts. */
function configArgument(argv: readonly string[]): string | undefined {
  const end = argv.indexOf('--');
  const args = end < 0 ? argv : argv.slice(0, end);
  let given: string | undefined;
  for (const [index, arg] of args.entries()) {
    if (arg === '-c' || arg === '--config') given = args[index + 1];
    else if (arg.startsWith('--config=')) given = arg.slice('--config='.length);
    else if (/^-c./.test(arg)) given = arg.slice('-c'.length);
  }
  return given;
}

/** The first word that is neither an option nor the value of `--config`. */
function commandOf(argv: readonly string[]): string | undefined {
  return argv.find((arg, index) => !arg.startsWith('-') && argv[index - 1] !== '-c' && argv[index - 1] !== '--config');
}

function report(error: unknown, { terminal }: ProgramRun, json: boolean): number {
  // Commander has printed its own message; asking for help or the version is no fault, and a value that does not fit is bad input like any.
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return 0;
    const isValue = error.code === 'commander.invalidArgument';
    const message = error.message.replace(/^error: /, '').replace(/\s*\n\s*/g, ' ');
    if (json) terminal.stderr.write(`${JSON.stringify({ error: { code: isValue ? 'invalid_value' : 'invalid_usage', message } })}\n`);
    return isValue ? 1 : 2;
  }
  const code = isKitError(error) ? error.code : 'failed';
  const explained = explainFailure(error);
  const message = explained ?? (error instanceof Error ? error.message : String(error));
  if (json) terminal.stderr.write(`${JSON.stringify({ error: { code, message } })}\n`);
  else terminal.stderr.write(`${paint('red', 'error:', terminal.stderr)} ${message}\n`);
  // A sentence is enough for what we foresaw; for anything else the stack is what helps.
  if (explained === undefined && !json && error instanceof Error && error.stack !== undefined)
    terminal.stderr.write(`${paint('dim', error.stack, terminal.stderr)}\n`);
  return error instanceof CliFailure ? error.exitCode : 1;
}
