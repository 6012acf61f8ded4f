import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import process from 'node:process';
import { parse as parseToml, TomlError } from 'smol-toml';
import type { Environment } from '../document/environment.ts';
import type { SectionDefinition } from '../section/definition.ts';
import type { TlsMaterial } from '../tls/tls-material.ts';
import { parseBindAddress, type BindAddress } from './bind-address.ts';
import { StartRefusal, type Problem } from './problem.ts';
import { readClients, type Client } from './read-clients.ts';
import { readSections } from './read-sections.ts';
import { readTls } from './read-tls.ts';
import { TableReader } from './table-reader.ts';

const WATCH_DEBOUNCE_MS = 250;
const WATCH_DEBOUNCE_MS_MAX = 600_000;
const STREAM_CONNECTIONS = 4096;
const STREAM_CONNECTIONS_MAX = 1_000_000;

/** server.toml, complete and checked. */
export interface ServerConfig {
  readonly path: string;
  readonly bind: BindAddress;
  readonly healthBind: BindAddress | undefined;
  /** 0: nothing is watched. */
  readonly watchDebounceMs: number;
  /** 0: the stream endpoint does not exist. */
  readonly maxStreamConnections: number;
  readonly sections: readonly SectionDefinition[];
  readonly clients: readonly Client[];
  readonly tls: TlsMaterial | undefined;
  readonly environment: Environment;
  /** server.toml and every file it takes a token or a certificate from. */
  readonly inputs: readonly string[];
}

/** Reads and checks server.toml and the files it names directly. Throws a StartRefusal that lists every problem found. */
export function loadServerConfig(path: string, environment: Environment = process.env): ServerConfig {
  const file = resolve(path);
  const problems: Problem[] = [];
  const raw = parseServerToml(file);
  const root = new TableReader('', raw, problems);
  const server = root.table('server');
  root.finish();
  if (server === undefined) {
    if (!root.has('server')) problems.push({ key: 'server', message: 'the table [server] is missing' });
    throw new StartRefusal(file, problems);
  }
  const config = readServer(server, file, environment);
  if (problems.length > 0) throw new StartRefusal(file, problems);
  return config;
}

function parseServerToml(file: string): Record<string, unknown> {
  try {
    return parseToml(readFileSync(file, 'utf8'));
  } catch (error) {
    const message =
      error instanceof TomlError
        ? `is not valid TOML (line ${error.line}, column ${error.column})`
        : `cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown error'})`;
    throw new StartRefusal(file, [{ key: '', message }]);
  }
}

function readServer(server: TableReader, file: string, environment: Environment): ServerConfig {
  const folder = dirname(file);
  const sections = readSections(server, folder);
  const { clients, files: tokenFiles } = readClients(server, new Set(sections.map((section) => section.application)), folder);
  const platform = { tls: Boolean((process.features as { tls?: boolean }).tls), modes: process.platform !== 'win32' };
  const { tls, files: tlsFiles } = readTls(server, folder, platform);
  const config: ServerConfig = {
    path: file,
    bind: readBind(server, 'bind') ?? { host: '127.0.0.1', port: 8888 },
    healthBind: readBind(server, 'health_bind'),
    watchDebounceMs: server.integer('watch_debounce_ms', WATCH_DEBOUNCE_MS, WATCH_DEBOUNCE_MS_MAX),
    maxStreamConnections: server.integer('max_stream_connections', STREAM_CONNECTIONS, STREAM_CONNECTIONS_MAX),
    sections,
    clients,
    tls,
    environment,
    inputs: [...new Set([file, ...tokenFiles, ...tlsFiles])],
  };
  server.finish();
  return Object.freeze(config);
}

function readBind(server: TableReader, key: string): BindAddress | undefined {
  const text = server.string(key);
  if (text === undefined) return undefined;
  const address = parseBindAddress(text);
  if (address === undefined) server.problem(key, 'must be host:port, an IPv6 host in brackets, such as 127.0.0.1:8888 or [::1]:8888');
  return address;
}
