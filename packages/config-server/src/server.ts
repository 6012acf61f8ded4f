import { lookup } from 'node:dns/promises';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { AuditSink } from './audit/audit-entry.ts';
import { jsonLines } from './audit/json-lines.ts';
import { LineWriter } from './audit/line-writer.ts';
import { AuditRecorder } from './audit/recorder.ts';
import type { BindAddress } from './config/bind-address.ts';
import type { ServerConfig } from './config/config.ts';
import { StartRefusal } from './config/problem.ts';
import { createHealthListener, createListener } from './http/listener.ts';
import type { Roster, Service } from './http/service.ts';
import { createSocket, DEADLINES, type Deadlines } from './http/sockets.ts';
import { StreamHub } from './http/stream-hub.ts';
import { TokenTable } from './http/token-table.ts';
import { Limiter } from './section/limiter.ts';
import { prepareSections } from './section/open-sections.ts';
import { Section } from './section/section.ts';

export interface ServerOptions {
  /** Receives every audit entry; standard error by default. */
  readonly audit?: AuditSink;
  /** Receives operational messages, one line each; standard output by default. */
  readonly log?: (line: string) => void;
  readonly now?: () => number;
  readonly deadlines?: Partial<Deadlines>;
}

const REHEARSALS_MAX = 8;
const SHUTDOWN_MS = 10_000;

export class ConfigServer implements Service {
  readonly audit: AuditRecorder;
  readonly streams = new StreamHub();
  readonly #config: ServerConfig;
  readonly #log: (line: string) => void;
  readonly #now: () => number;
  readonly #deadlines: Deadlines;
  readonly #rehearsals = new Limiter(REHEARSALS_MAX);
  #roster: Roster;
  #stopping = false;
  #socket: Server | undefined;
  #healthSocket: Server | undefined;

  private constructor(config: ServerConfig, roster: Roster, options: ServerOptions) {
    this.#config = config;
    this.#roster = roster;
    this.#now = options.now ?? Date.now;
    this.#log = options.log ?? standardOutput();
    this.audit = new AuditRecorder(options.audit ?? standardError(this.#log), this.#now);
    this.#deadlines = { ...DEADLINES, ...options.deadlines };
  }

  static async open(config: ServerConfig, options: ServerOptions = {}): Promise<ConfigServer> {
    const { prepared, problems } = await prepareSections(config, config.sections);
    if (problems.length > 0) throw new StartRefusal(config.path, problems);
    const now = (options.now ?? Date.now)();
    const sections = new Map<string, Section>();
    for (const [key, section] of prepared) sections.set(key, new Section(section, 1, now));
    const roster = { tokens: new TokenTable(config.clients), sections, maxStreamConnections: config.maxStreamConnections };
    return new ConfigServer(config, roster, options);
  }

  static async start(config: ServerConfig, options: ServerOptions = {}): Promise<ConfigServer> {
    const server = await ConfigServer.open(config, options);
    await server.#listen();
    return server;
  }

  get roster(): Roster {
    return this.#roster;
  }

  get stopping(): boolean {
    return this.#stopping;
  }

  get ready(): boolean {
    return !this.#stopping && [...this.#roster.sections.values()].every((section) => section.healthy);
  }

  now(): number {
    return this.#now();
  }

  rehearse<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#rehearsals.run(work);
  }

  get address(): AddressInfo | undefined {
    return addressOf(this.#socket);
  }

  get healthAddress(): AddressInfo | undefined {
    return addressOf(this.#healthSocket);
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    this.streams.closeAll();
    await closeSocket(this.#socket);
    await closeSocket(this.#healthSocket);
    this.audit.flush();
  }

  async #listen(): Promise<void> {
    const { tls, bind, healthBind } = this.#config;
    this.#socket = createSocket(createListener(this), tls, this.audit, this.#deadlines);
    await listen(this.#socket, bind);
    if (healthBind === undefined) return;
    this.#healthSocket = createSocket(createHealthListener(this), undefined, this.audit, this.#deadlines);
    await listen(this.#healthSocket, healthBind);
  }
}

async function listen(socket: Server, { host, port }: BindAddress): Promise<void> {
  const { address } = await lookup(host);
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.listen(port, address, () => {
      socket.off('error', reject);
      resolve();
    });
  });
}

async function closeSocket(socket: Server | undefined): Promise<void> {
  if (socket === undefined) return;
  const deadline = setTimeout(() => socket.closeAllConnections(), SHUTDOWN_MS);
  await new Promise((resolve) => socket.close(resolve));
  clearTimeout(deadline);
}

function addressOf(socket: Server | undefined): AddressInfo | undefined {
  const address = socket?.address();
  return typeof address === 'object' && address !== null ? address : undefined;
}

function standardOutput(): (line: string) => void {
  const writer = new LineWriter(1);
  return (line) => {
    writer.add(line);
    writer.flush();
  };
}

function standardError(log: (line: string) => void): AuditSink {
  return jsonLines(
    new LineWriter(2, { onRecovered: (dropped) => log(`config-server: the audit destination recovered; ${dropped} lines were lost`) }),
  );
}
