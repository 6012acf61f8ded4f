import { resolve } from 'node:path';
import process from 'node:process';
import { logToStandardOutput } from '../audit/standard-streams.ts';
import { formatAddress, isLoopback } from '../config/bind-address.ts';
import { readServerConfig, type ServerConfig } from '../config/config.ts';
import { StartRefusal, type Problem } from '../config/problem.ts';
import { synchronousFiles } from '../file-access.ts';
import { packageVersion } from '../package-version.ts';
import { prepareSections } from '../section/prepare-sections.ts';
import { ConfigServer } from '../server.ts';
import { openTracing } from '../tracing/open-tracing.ts';
import { explain, knownCodes } from './explain.ts';

const USAGE = `usage: config-server <server.toml>
       config-server --check <server.toml>   validate everything a start would, open no socket
       config-server --explain <code>        what a failure, response or error means, and what to do
       config-server --version
       config-server --help
`;

const EXIT_CLEAN = 0;
const EXIT_REFUSED = 1;
const EXIT_USAGE = 2;

/** Runs the command line; resolves to the exit code, when there is one before a signal ends the server. */
async function main(parameters: readonly string[]): Promise<number | undefined> {
  const [first, second] = parameters;
  if (parameters.length === 1 && first === '--help') return print(USAGE);
  if (parameters.length === 1 && first === '--version') return print(`${packageVersion()}\n`);
  try {
    if (parameters.length === 2 && first === '--check' && second !== '') return await check(second!);
    if (parameters.length === 2 && first === '--explain' && second !== '') return explainCode(second!);
    if (parameters.length === 1 && first !== '' && !first!.startsWith('-')) return await serve(first!);
  } catch (error) {
    return refuse(error);
  }
  process.stderr.write(USAGE);
  return EXIT_USAGE;
}

function print(text: string): number {
  process.stdout.write(text);
  return EXIT_CLEAN;
}

function explainCode(code: string): number {
  const text = explain(code);
  if (text !== undefined) return print(text);
  process.stderr.write(`config-server: ${JSON.stringify(code)} is not a known code. The codes are\n${knownCodes()}`);
  return EXIT_REFUSED;
}

async function check(path: string): Promise<number> {
  const config = await validate(path, true);
  const warning = config.tls?.warning(Date.now());
  if (warning !== undefined) print(`config-server: WARNING: ${warning}\n`);
  return print(
    `config-server: ${config.path} is valid: ${counted(config.sections.length, 'section')}, ${counted(config.clients.length, 'client')}, ${posture(config)}${secretsSummary(config)}\n`,
  );
}

function secretsSummary({ secrets }: ServerConfig): string {
  if (secrets === undefined) return '';
  const { keyring, mounts } = secrets;
  const identities = keyring === undefined ? '' : `, ${keyring.size} ${keyring.size === 1 ? 'identity' : 'identities'}`;
  return `${identities}${mounts.length === 0 ? '' : `, ${counted(mounts.length, 'mount')}`}`;
}

/** The configuration, or a refusal with every problem: when the file has problems, loading is checked too. */
async function validate(path: string, load: boolean): Promise<ServerConfig> {
  const { config, problems } = readServerConfig(path);
  if (config !== undefined && problems.length === 0 && !load) return config;
  const sections = config?.sections.filter((section) => section.files.length > 0) ?? [];
  const found =
    config === undefined
      ? []
      : [...(await prepareSections(config, sections, synchronousFiles)).problems, ...(await tracingProblems(config))];
  if (config === undefined || problems.length + found.length > 0) throw new StartRefusal(resolve(path), [...problems, ...found]);
  return config;
}

async function tracingProblems(config: ServerConfig): Promise<Problem[]> {
  const tracing = await openTracing(config);
  return 'problem' in tracing ? [tracing.problem] : [];
}

async function serve(path: string): Promise<undefined> {
  const config = await validate(path, false);
  // A full disk or a closed pipe must not keep the server from starting: its lines wait instead.
  const log = logToStandardOutput();
  const server = await ConfigServer.start(config, { log });
  // Before the start line: a supervisor may signal as soon as it reads it, and SIGHUP without a handler ends the process.
  onSignals(server);
  const address = server.address!;
  const real = formatAddress({ host: address.address, port: address.port });
  log(`config-server ${packageVersion()} listening on ${real} (${posture(config)})`);
  if (config.tls === undefined && !isLoopback(address.address)) {
    log(
      `config-server: WARNING: ${real} is reachable from other machines and serves secrets in plaintext; configure [server.tls] or bind to 127.0.0.1`,
    );
  }
  return undefined;
}

function posture({ tls }: ServerConfig): string {
  return tls === undefined ? 'plaintext' : tls.requiresClientCertificate ? 'tls + client certificate' : 'tls';
}

function onSignals(server: ConfigServer): void {
  const stop = (): void => {
    server.stop().then(() => process.exit(EXIT_CLEAN), fatal);
  };
  process.on('SIGHUP', () => void server.reload().catch(fatal));
  // A terminal or a supervisor may send a signal twice. Without a listener the second one would cut off the requests that finish.
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
}

function refuse(error: unknown): number {
  if (!(error instanceof StartRefusal)) throw error;
  for (const line of error.lines) process.stderr.write(`config-server: refusing to start: ${line}\n`);
  return EXIT_REFUSED;
}

/** A defect. Its message may quote anything, so only its kind is printed. */
function fatal(error: unknown): void {
  const { name, code = '' } = error as NodeJS.ErrnoException;
  process.stderr.write(`config-server: internal error: ${name} ${code}\n`);
  process.exit(EXIT_REFUSED);
}

process.on('uncaughtException', fatal);
const code = await main(process.argv.slice(2));
if (code !== undefined) process.exitCode = code;

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
