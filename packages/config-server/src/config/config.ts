import { dirname, resolve } from 'node:path';
import process from 'node:process';
import { parse as parseToml, TomlError } from 'smol-toml';
import type { Environment } from '../document/environment.ts';
import { readRegularFile } from '../file-access.ts';
import type { Secrets } from '../secrets/secrets.ts';
import type { SectionDefinition } from '../section/definition.ts';
import type { TlsMaterial } from '../tls/tls-material.ts';
import { parseBindAddress, type BindAddress } from './bind-address.ts';
import { StartRefusal, type Problem } from './problem.ts';
import { readClients, type Client } from './read-clients.ts';
import { readGit, type GitFolder } from './read-git.ts';
import { readSections } from './read-sections.ts';
import { readSecrets } from './read-secrets.ts';
import { readTls } from './read-tls.ts';
import { TableReader } from './table-reader.ts';

const WATCH_DEBOUNCE_MS = 250;
const WATCH_DEBOUNCE_MS_MAX = 600_000;
const STREAM_CONNECTIONS = 4096;
const STREAM_CONNECTIONS_MAX = 1_000_000;

/** server.toml, complete and checked. */
export interface ServerConfig {
  /** The path of server.toml. */
  readonly path: string;
  /** Where documents are served. */
  readonly bind: BindAddress;
  /** A second, plain HTTP listener for `/healthz` and `/readyz` only; undefined: none. */
  readonly healthBind: BindAddress | undefined;
  /** 0: nothing is watched. */
  readonly watchDebounceMs: number;
  /** 0: the stream endpoint does not exist. */
  readonly maxStreamConnections: number;
  /** Whether requests make OpenTelemetry spans. */
  readonly tracing: boolean;
  /** The documents, one per application and profile. */
  readonly sections: readonly SectionDefinition[];
  /** Where server.toml defines each section, such as `server.sections[2]`. Sections with a problem are left out of `sections`. */
  readonly sectionTables: ReadonlyMap<SectionDefinition, string>;
  /** Who may read, and which applications. */
  readonly clients: readonly Client[];
  /** Undefined: the server speaks plain HTTP. */
  readonly tls: TlsMaterial | undefined;
  /** What opens encrypted values and references; undefined when files are served as they are. */
  readonly secrets: Secrets | undefined;
  /** The variables that sections take values from. */
  readonly environment: Environment;
  /** server.toml and every file it takes a token, a certificate or an identity from. A folder of identities ends with a slash. */
  readonly inputs: readonly string[];
}

export interface ConfigReading {
  /** What could be made of the file; complete when there are no problems. */
  readonly config: ServerConfig | undefined;
  readonly problems: readonly Problem[];
  /** Folders and files that must exist and do not: a repository, a mount, trusted keys. */
  readonly missing: readonly string[];
}

/** Reads and checks server.toml and the files it names directly. Throws a StartRefusal that lists every problem found. */
export function loadServerConfig(path: string, environment: Environment = process.env): ServerConfig {
  const { config, problems } = readServerConfig(path, environment);
  if (config === undefined || problems.length > 0) throw new StartRefusal(resolve(path), problems);
  return config;
}

export function readServerConfig(path: string, environment: Environment = process.env): ConfigReading {
  if (typeof path !== 'string') throw new TypeError('loadServerConfig(): the path is missing; use the path of server.toml.');
  const file = resolve(path);
  const raw = parseServerToml(file);
  if ('problem' in raw) return { config: undefined, problems: [raw.problem], missing: [] };
  const problems: Problem[] = [];
  const missing: string[] = [];
  const root = new TableReader('', raw.table, problems);
  const server = root.table('server');
  if (!root.has('server')) root.problem('server', 'the table [server] is missing');
  const git = readGit(root, dirname(file), environment, missing);
  root.finish();
  return { config: server && readServer(server, file, environment, git, missing), problems, missing };
}

function parseServerToml(file: string): { readonly table: Record<string, unknown> } | { readonly problem: Problem } {
  try {
    // Fatal: a token or name with replaced bytes would be one that is in no file and that no request can present.
    return { table: parseToml(new TextDecoder('utf-8', { fatal: true }).decode(readRegularFile(file))) };
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown error';
    const message =
      error instanceof TomlError
        ? `is not valid TOML (line ${error.line}, column ${error.column})`
        : code === 'ERR_ENCODING_INVALID_ENCODED_DATA'
          ? 'is not valid UTF-8; save it in that encoding'
          : `cannot be read (${code})`;
    return { problem: { key: '', message } };
  }
}

function readServer(
  server: TableReader,
  file: string,
  environment: Environment,
  git: GitFolder | 'unusable' | undefined,
  missing: string[],
): ServerConfig {
  const folder = dirname(file);
  const { sections, tables: sectionTables, named } = readSections(server, folder, git);
  const { clients, files: tokenFiles } = readClients(server, named, folder);
  const platform = { tls: Boolean((process.features as { tls?: boolean }).tls), modes: process.platform !== 'win32' };
  const { tls, files: tlsFiles } = readTls(server, folder, platform);
  const ownFiles = [file, ...tokenFiles, ...tlsFiles];
  const { secrets, files: identityFiles } = readSecrets(server, folder, platform.modes, ownFiles, missing);
  const config: ServerConfig = {
    path: file,
    bind: readBind(server, 'bind') ?? { host: '127.0.0.1', port: 8888 },
    healthBind: readBind(server, 'health_bind'),
    watchDebounceMs: server.integer('watch_debounce_ms', WATCH_DEBOUNCE_MS, WATCH_DEBOUNCE_MS_MAX),
    maxStreamConnections: server.integer('max_stream_connections', STREAM_CONNECTIONS, STREAM_CONNECTIONS_MAX),
    tracing: server.boolean('tracing', false),
    sections,
    sectionTables,
    clients,
    tls,
    secrets,
    // A plain copy: reading process.env calls into the operating system each time, and every section looks through all of it.
    environment: Object.freeze({ ...environment }),
    inputs: [...new Set([...ownFiles, ...identityFiles])],
  };
  const { bind, healthBind } = config;
  if (healthBind !== undefined && bind.port !== 0 && bind.host === healthBind.host && bind.port === healthBind.port)
    server.problem('health_bind', 'must differ from bind; choose another port');
  server.finish();
  return Object.freeze(config);
}

function readBind(server: TableReader, key: string): BindAddress | undefined {
  const value = server.value(key);
  if (value === undefined) return undefined;
  const address = typeof value === 'string' ? parseBindAddress(value) : undefined;
  if (address === undefined) server.problem(key, 'must be host:port, an IPv6 host in brackets, such as 127.0.0.1:8888 or [::1]:8888');
  return address;
}
