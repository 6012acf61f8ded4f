import { mkdir, writeFile } from 'node:fs/promises';
import { request, type Agent, type IncomingHttpHeaders } from 'node:http';
import { request as requestTls, type RequestOptions as TlsRequestOptions } from 'node:https';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { ConfigServer, loadServerConfig, type AuditEntry, type ServerOptions } from '../src/index.ts';
import { temporaryFolder } from './temporary-folder.ts';

export const TOKEN = 'billing-token-0123456789-0123456789';
export const OTHER_TOKEN = 'orders-token-0123456789-0123456789';
export const NO_GRANTS_TOKEN = 'nobody-token-0123456789-0123456789';

/** Two applications, a client for each and one with no grants. */
export const SERVER_TOML = `
[server]
bind = "127.0.0.1:0"
watch_debounce_ms = 20

[[server.sections]]
application = "billing"
profile = "prod"
files = ["billing.toml"]

[[server.sections]]
application = "orders"
profile = "prod"
files = ["orders.yaml"]

[[server.clients]]
name = "billing-service"
token = "${TOKEN}"
applications = ["billing"]

[[server.clients]]
name = "orders-service"
token = "${OTHER_TOKEN}"
applications = ["orders"]

[[server.clients]]
name = "nobody"
token = "${NO_GRANTS_TOKEN}"
applications = []
`;

export const FILES: Readonly<Record<string, string>> = {
  'billing.toml': '[billing]\nname = "invoices"\npassword = "correct horse"\n\n[billing.pool]\nmaxSize = 5\n',
  'orders.yaml': 'orders:\n  region: eu\n',
};

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  readonly text: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests reach into whatever the server answered
  json(): any;
}

export interface AskOptions {
  readonly token?: string | null;
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly agent?: Agent;
  readonly body?: string;
  readonly tls?: TlsRequestOptions;
}

export interface StartOptions extends ServerOptions {
  readonly toml?: string;
  readonly files?: Readonly<Record<string, string>>;
  readonly environment?: Record<string, string>;
  readonly folder?: string;
}

export class RunningServer {
  readonly server: ConfigServer;
  readonly folder: string;
  readonly audit: AuditEntry[];
  readonly log: string[];

  constructor(server: ConfigServer, folder: string, audit: AuditEntry[], log: string[]) {
    this.server = server;
    this.folder = folder;
    this.audit = audit;
    this.log = log;
  }

  get port(): number {
    return this.server.address!.port;
  }

  ask(path: string, options: AskOptions = {}): Promise<Reply> {
    return ask(this.port, path, options);
  }

  write(name: string, text: string): Promise<void> {
    return writeFile(join(this.folder, name), text);
  }

  // oxlint-disable-next-line typescript/no-explicit-any -- as above
  async status(section = 'billing/prod', token = TOKEN): Promise<any> {
    return (await this.ask(`/${section}/status`, { token })).json();
  }
}

export async function writeFiles(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
}

/** A real server on a loopback port, stopped when the test ends. */
export async function startServer(options: StartOptions = {}): Promise<RunningServer> {
  const folder = options.folder ?? (await temporaryFolder());
  await writeFiles(folder, { ...(options.files ?? FILES), 'server.toml': options.toml ?? SERVER_TOML });
  const audit: AuditEntry[] = [];
  const log: string[] = [];
  const config = loadServerConfig(join(folder, 'server.toml'), options.environment ?? {});
  const server = await ConfigServer.start(config, { audit: (entry) => audit.push(entry), log: (line) => log.push(line), ...options });
  onTestFinished(() => server.stop());
  return new RunningServer(server, folder, audit, log);
}

/** A request exactly as given: unlike fetch, nothing in the path is normalised. */
export function ask(port: number, path: string, options: AskOptions = {}): Promise<Reply> {
  const { token = TOKEN, method = 'GET', headers = {}, agent, body, tls } = options;
  return new Promise((resolve, reject) => {
    const authorization = token === null ? {} : { authorization: `Bearer ${token}` };
    const common = { host: '127.0.0.1', port, path, method, headers: { ...authorization, ...headers }, agent: agent ?? false };
    const sent = tls ? requestTls({ ...common, ...tls, agent: false }) : request(common as object);
    sent.on('error', reject);
    sent.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const bytes = Buffer.concat(chunks);
        const text = bytes.toString();
        resolve({
          status: response.statusCode!,
          headers: response.headers,
          rawHeaders: response.rawHeaders,
          body: bytes,
          text,
          json: () => JSON.parse(text),
        });
      });
    });
    sent.end(body);
  });
}

/** Waits for something that a file watcher or a peer causes: these take real time, so it is polled. */
export async function eventually(condition: () => boolean | Promise<boolean>, what: string, withinMs = 50_000): Promise<void> {
  const deadline = Date.now() + withinMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`did not happen in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
