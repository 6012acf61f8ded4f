import { lookup } from 'node:dns/promises';
import type { Server } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { AuditSink } from './audit/audit-entry.ts';
import { AuditRecorder } from './audit/recorder.ts';
import { logToStandardOutput, auditToStandardError } from './audit/standard-streams.ts';
import { systemClock, type Clock } from './clock.ts';
import { formatAddress, type BindAddress } from './config/bind-address.ts';
import type { ServerConfig } from './config/config.ts';
import { isGranted } from './config/grant.ts';
import { StartRefusal } from './config/problem.ts';
import { createHealthListener, createListener } from './http/listener.ts';
import type { Roster, Service } from './http/service.ts';
import { createSocket, DEADLINES, type Deadlines } from './http/sockets.ts';
import { StreamHub } from './http/stream-hub.ts';
import { oneLine } from './one-line.ts';
import { LiveRoster } from './roster/live-roster.ts';
import { Limiter } from './section/limiter.ts';
import type { TlsMaterial } from './tls/tls-material.ts';
import { openTracing } from './tracing/open-tracing.ts';
import type { RecordSpan } from './tracing/record-span.ts';

export interface ServerOptions {
  /** Receives every audit entry; standard error by default. */
  readonly audit?: AuditSink;
  /** Receives operational messages, one line each; standard output by default. */
  readonly log?: (line: string) => void;
  /** The time; for tests. */
  readonly clock?: Clock;
  /** Limits in milliseconds for requests and shutdown, where the defaults do not fit. */
  readonly deadlines?: Partial<Deadlines>;
}

/** How many loads for `/check` run at once in the process. */
const DRY_RUNS_MAX = 8;
const IDLE_CHECK_MS = 20;
/** When one connection cannot be accepted, thousands more follow: one message per minute is enough. */
const ACCEPT_FAILURE_SILENCE_MS = 60_000;

const LISTEN_REMEDIES: Readonly<Record<string, string>> = {
  EADDRINUSE: '; another program does: stop it, or choose another port',
  EADDRNOTAVAIL: '; this machine does not have that address',
  EACCES: '; ports below 1024 need a privilege: choose a higher one',
  ENOTFOUND: '; the name cannot be resolved',
  EAI_AGAIN: '; the name cannot be resolved at the moment',
};

/** The running service. `start` opens sockets; `open` does everything else, for an application with its own server. */
export class ConfigServer implements Service {
  readonly audit: AuditRecorder;
  readonly streams: StreamHub;
  readonly recordSpan: RecordSpan | undefined;
  readonly #config: ServerConfig;
  readonly #log: (line: string) => void;
  readonly #clock: Clock;
  readonly #deadlines: Deadlines;
  readonly #dryRuns = new Limiter(DRY_RUNS_MAX);
  #live: LiveRoster | undefined;
  #stopped: Promise<void> | undefined;
  /** The certificates of the socket; undefined for a plain one, whatever server.toml says now. */
  #served: TlsMaterial | undefined;
  #socket: Server | undefined;
  #healthSocket: Server | undefined;
  #acceptFailedAt = Number.NEGATIVE_INFINITY;

  private constructor(config: ServerConfig, options: ServerOptions, recordSpan: RecordSpan | undefined) {
    this.#config = config;
    this.recordSpan = recordSpan;
    this.#clock = options.clock ?? systemClock;
    const log = options.log ?? logToStandardOutput();
    this.#log = (line) => log(oneLine(line));
    this.#deadlines = { ...DEADLINES, ...options.deadlines };
    this.audit = new AuditRecorder(options.audit ?? auditToStandardError(this.#log), () => this.#clock.now());
    this.streams = new StreamHub(this.#clock);
  }

  /** Loads every section and starts watching; opens no socket. Mount it with `createListener(server)`. */
  static async open(config: ServerConfig, options: ServerOptions = {}): Promise<ConfigServer> {
    const tracing = await openTracing(config);
    if ('problem' in tracing) throw new StartRefusal(config.path, [tracing.problem]);
    const server = new ConfigServer(config, options, tracing.recordSpan);
    server.#live = await LiveRoster.open(config, server.#clock, {
      log: server.#log,
      onInstall: (section) => server.streams.publish(section),
      onConfig: (after) => server.#reconfigured(after),
    });
    return server;
  }

  /** Opens and listens on the configured addresses. Throws a StartRefusal when it cannot. */
  static async start(config: ServerConfig, options: ServerOptions = {}): Promise<ConfigServer> {
    const server = await ConfigServer.open(config, options);
    try {
      await server.#listen();
    } catch (error) {
      await server.stop();
      throw error;
    }
    return server;
  }

  get roster(): Roster {
    return this.#live!.current;
  }

  get stopping(): boolean {
    return this.#stopped !== undefined;
  }

  get ready(): boolean {
    return !this.stopping && this.#live!.healthy;
  }

  /** Where the server listens, the port resolved; undefined when it was opened without a socket. */
  get address(): AddressInfo | undefined {
    return addressOf(this.#socket);
  }

  get healthAddress(): AddressInfo | undefined {
    return addressOf(this.#healthSocket);
  }

  now(): number {
    return this.#clock.now();
  }

  dryRun<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#dryRuns.run(work);
  }

  /** What SIGHUP does: reads server.toml and every section again. */
  reload(): Promise<void> {
    return this.#live!.reloadEverything();
  }

  /** Not ready first; then no new connection, streams end, requests in flight finish or are cut off after ten seconds. */
  stop(): Promise<void> {
    // A second call waits for the same stop: a second signal must not cut off requests that the first one lets finish.
    if (this.#stopped !== undefined) return this.#stopped;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#stopped = promise;
    resolve(this.#stop());
    return promise;
  }

  async #stop(): Promise<void> {
    const startedAt = performance.now();
    this.#live?.close();
    this.streams.closeAll();
    await closeSocket(this.#socket, this.#deadlines.shutdownMs);
    // Probes get "not ready" until the very end.
    await closeSocket(this.#healthSocket, 0);
    await this.audit.close(Math.max(0, this.#deadlines.shutdownMs - (performance.now() - startedAt)));
  }

  async #listen(): Promise<void> {
    const { tls, bind, healthBind } = this.#config;
    this.#socket = createSocket(createListener(this), tls, this.audit, this.#deadlines);
    this.#served = tls;
    await this.#listenOn(this.#socket, bind, 'server.bind');
    this.#warn(tls);
    if (healthBind === undefined) return;
    this.#healthSocket = createSocket(createHealthListener(this), undefined, this.audit, this.#deadlines);
    await this.#listenOn(this.#healthSocket, healthBind, 'server.health_bind');
  }

  async #listenOn(socket: Server, bind: BindAddress, key: string): Promise<void> {
    try {
      const { address } = await lookup(bind.host);
      await new Promise<void>((resolve, reject) => {
        socket.once('error', reject);
        socket.listen(bind.port, address, () => {
          socket.off('error', reject);
          // For example no file descriptor left for a connection: that is temporary and must not end open connections.
          socket.on('error', (error) => this.#acceptFailed(error));
          resolve();
        });
      });
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? 'unknown error';
      const address = formatAddress(bind);
      const message = `cannot listen on ${address} (${code})${LISTEN_REMEDIES[code] ?? ''}`;
      throw new StartRefusal(this.#config.path, [{ key, message }]);
    }
  }

  #acceptFailed(error: NodeJS.ErrnoException): void {
    const now = this.#clock.now();
    if (Math.abs(now - this.#acceptFailedAt) < ACCEPT_FAILURE_SILENCE_MS) return;
    this.#acceptFailedAt = now;
    this.#log(
      `config-server: WARNING: connections cannot be accepted (${error.code ?? 'unknown error'}); raise the limit of open files, or find the process that holds them`,
    );
  }

  #reconfigured(after: ServerConfig): void {
    const { tokens, sections } = this.roster;
    this.streams.closeUnless((section, digest) => {
      const grants = tokens.findDigest(digest)?.applications;
      return (
        sections.get(section.key) === section && grants !== undefined && isGranted(grants, section.definition.application, section.key)
      );
    });
    if (this.#served !== undefined && after.tls !== undefined && !this.#served.equals(after.tls)) this.#swapCertificates(after.tls);
    for (const key of changedAtRestart(this.#config, after)) {
      this.#log(`config-server: ${key} changed in ${after.path}; that takes effect at the next start`);
    }
    this.#log(`config-server: ${after.path} was read again: sections ${after.sections.length}, clients ${after.clients.length}`);
  }

  /** New handshakes get the new certificate; connections and streams that are open keep going. */
  #swapCertificates(tls: TlsMaterial): void {
    const socket = this.#socket as HttpsServer & { requestCert: boolean; rejectUnauthorized: boolean };
    this.#served = tls;
    socket.setSecureContext(tls.options);
    // setSecureContext does not change these two, and a client authority that was added or removed must take effect at once.
    socket.requestCert = tls.requiresClientCertificate;
    socket.rejectUnauthorized = true;
    this.#warn(tls);
  }

  #warn(tls: TlsMaterial | undefined): void {
    const warning = tls?.warning(this.#clock.now());
    if (warning !== undefined) this.#log(`config-server: WARNING: ${warning}`);
  }
}

/** Keys that take effect only at a start. */
function changedAtRestart(running: ServerConfig, after: ServerConfig): string[] {
  const keys: string[] = [];
  const differ = (a: unknown, b: unknown): boolean => JSON.stringify(a) !== JSON.stringify(b);
  if (differ(running.bind, after.bind)) keys.push('server.bind');
  if (differ(running.healthBind, after.healthBind)) keys.push('server.health_bind');
  if (running.watchDebounceMs !== after.watchDebounceMs) keys.push('server.watch_debounce_ms');
  if (running.tracing !== after.tracing) keys.push('server.tracing');
  if ((running.tls === undefined) !== (after.tls === undefined)) keys.push('server.tls');
  return keys;
}

async function closeSocket(socket: Server | undefined, waitMs: number): Promise<void> {
  if (socket === undefined || !socket.listening) return;
  // An ended stream leaves an idle connection that its peer keeps open.
  const idle = setInterval(() => socket.closeIdleConnections(), IDLE_CHECK_MS);
  const deadline = setTimeout(() => socket.closeAllConnections(), waitMs);
  await new Promise((resolve) => socket.close(resolve));
  clearInterval(idle);
  clearTimeout(deadline);
}

function addressOf(socket: Server | undefined): AddressInfo | undefined {
  const address = socket?.address();
  return typeof address === 'object' && address !== null ? address : undefined;
}
