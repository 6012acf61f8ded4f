import type { DbLog } from '../../log.ts';
import type { ConnectionPool } from './connection-pool.ts';
import { isUnreachable, ServerSilent } from './connection-failure.ts';
import type { Session } from './session.ts';

export interface SilenceWatchOptions {
  readonly pool: ConnectionPool;
  readonly open: () => Promise<Session>;
  /** How long a statement is waited for before the server is asked about it over a new connection. 0: it is never asked. */
  readonly silenceMsMax: number;
  /** All connections silent for so long, while new ones can be opened: the process does not heal by itself. */
  readonly stuckMs: number;
  /** A connection was closed because its server is gone: others may have led to the same one. */
  readonly onDead: () => void;
  readonly log: DbLog;
}

/** A connection that has not said anything since its statement was sent. */
interface Silence {
  bytesRead: number;
  ms: number;
  /** Asked about next after so much silence. */
  askAtMs: number;
  /** The server said that it works on the statement. */
  isWorking: boolean;
}

/** The answer of a server about the statements of several connections. */
interface Verdicts {
  readonly dead: readonly Session[];
  readonly working: readonly Session[];
  /** Dead, and on this server: their processes wait for the next statement, with what their transactions have locked. */
  readonly orphaned: readonly Session[];
}

/** While a statement is worked on, the server is asked about it less and less often. */
const ASK_MS_MAX = 30_000;
/** Where nobody can be asked about a statement, it is given up after so many times the wait. */
const GIVE_UP_ROUNDS = 5;
/** How much of a statement's text tells it from others; the server keeps 1,024 bytes. */
const TEXT_LENGTH = 100;

/**
 * Finds connections whose server is gone without a word: a host that lost its power or its network, an address that leads to another host. TCP
 * waits 15 minutes for the answer to what was sent. A long statement is as silent, so the server is asked, over a new connection, whether it
 * works on it.
 */
export class SilenceWatch {
  readonly #options: SilenceWatchOptions;
  readonly #silences = new Map<Session, Silence>();
  readonly #timer: NodeJS.Timeout;
  readonly #askMs: number;
  #isAsking = false;
  #lastTick = performance.now();
  readonly #tickMs: number;
  /** What the last new connection showed. */
  #isReachable = true;

  constructor(options: SilenceWatchOptions) {
    this.#options = options;
    this.#askMs = options.silenceMsMax || options.stuckMs;
    this.#tickMs = Math.min(500, Math.max(10, this.#askMs / 4));
    this.#timer = setInterval(() => this.#tick(), this.#tickMs);
    this.#timer.unref();
  }

  /** Nothing has come over any of so many connections for so long, no server works on their statements, and new connections can be opened. */
  isStuck(connections: number): boolean {
    const stuck = [...this.#silences.values()].filter(({ ms, isWorking }) => ms >= this.#options.stuckMs && !isWorking);
    return this.#isReachable && stuck.length >= connections;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #tick(): void {
    const now = performance.now();
    // A process that did nothing for a while has not read what was there: this is not the server's silence.
    const passed = Math.min(now - this.#lastTick, 2 * this.#tickMs);
    this.#lastTick = now;
    const open = new Set(this.#options.pool.sessions);
    for (const session of this.#silences.keys()) if (!open.has(session)) this.#silences.delete(session);
    for (const session of open) this.#listenTo(session, passed);
    if (this.#isAsking) return;
    const due = [...this.#silences].filter(([, { ms, askAtMs }]) => ms >= askAtMs).map(([session]) => session);
    if (due.length === 0) return;
    this.#isAsking = true;
    void this.#ask(due).finally(() => (this.#isAsking = false));
  }

  #listenTo(session: Session, passedMs: number): void {
    if (!session.isWaiting) {
      this.#silences.delete(session);
      return;
    }
    const { bytesRead } = session;
    const known = this.#silences.get(session);
    if (known !== undefined && known.bytesRead === bytesRead) known.ms += passedMs;
    else this.#silences.set(session, { bytesRead, ms: 0, askAtMs: this.#askMs, isWorking: false });
  }

  async #ask(due: readonly Session[]): Promise<void> {
    const { dead, working } = await this.#verdicts(due);
    for (const session of due) {
      const silence = this.#silences.get(session);
      if (silence === undefined || !this.#isStillSilent(session)) continue;
      silence.isWorking = working.includes(session);
      silence.askAtMs = silence.ms + Math.min(ASK_MS_MAX, silence.isWorking ? silence.ms : this.#askMs);
      if (!dead.includes(session) || this.#options.silenceMsMax === 0) continue;
      this.#silences.delete(session);
      this.#options.log.warn({ silentMs: Math.round(silence.ms) }, 'a PostgreSQL connection whose server does not answer was closed');
      session.destroy(new ServerSilent('the server stopped answering, and the connection was closed'));
    }
    if (dead.length > 0 && this.#options.silenceMsMax > 0) this.#options.onDead();
  }

  /** Nothing has come since it was last looked at. */
  #isStillSilent(session: Session): boolean {
    return session.isWaiting && this.#silences.get(session)?.bytesRead === session.bytesRead;
  }

  #isLate(session: Session): boolean {
    return (this.#silences.get(session)?.ms ?? 0) >= GIVE_UP_ROUNDS * this.#askMs;
  }

  async #verdicts(due: readonly Session[]): Promise<Verdicts> {
    let session: Session;
    try {
      session = await this.#options.open();
    } catch (error) {
      this.#isReachable = !isUnreachable(error);
      return { dead: this.#isReachable ? [] : due.filter((each) => this.#isLate(each)), working: [], orphaned: [] };
    }
    const timer = setTimeout(() => session.destroy(), this.#options.silenceMsMax || ASK_MS_MAX);
    try {
      const verdicts = await verdictsOf(session, due, (each) => this.#isLate(each));
      this.#isReachable = true;
      const orphans = verdicts.orphaned.filter((each) => this.#isStillSilent(each)).map(({ processId }) => processId);
      if (orphans.length > 0 && this.#options.silenceMsMax > 0) await session.client.query(TERMINATE, [orphans, this.#askMs]);
      return verdicts;
    } catch {
      return { dead: [], working: [], orphaned: [] }; // it could not be asked; it is again
    } finally {
      clearTimeout(timer);
      void session.close();
    }
  }
}

/** A server process that works on a statement: one that waits for its client, for the rest of a message or to send an answer, does not count. */
const WORKING = `select pid, left(query, ${TEXT_LENGTH}) as text, state from pg_stat_activity
  where usename = current_user and pid <> pg_backend_pid() and state in ('active', 'fastpath function call', 'disabled')
    and wait_event_type is distinct from 'Client'`;

/** Not one that began since, under the same number. Without this, a server learns from its own keep-alive that a client is gone: 2 hours later by default. */
const TERMINATE = `select pg_terminate_backend(pid) from pg_stat_activity
  where pid = any(cast($1 as integer[])) and usename = current_user and backend_start < clock_timestamp() - $2 * interval '1 millisecond'
    and (state <> 'active' or wait_event_type = 'Client')`;

interface Activity {
  readonly pid: number;
  readonly text: string | null;
  /** `disabled`: the server does not say. */
  readonly state: string;
}

async function verdictsOf(fresh: Session, silent: readonly Session[], isLate: (session: Session) => boolean): Promise<Verdicts> {
  const here = fresh.identity ?? (await fresh.identify());
  const { rows } = await fresh.client.query<Activity>(WORKING);
  const dead: Session[] = [];
  const working: Session[] = [];
  const orphaned: Session[] = [];
  for (const session of silent) {
    const there = session.identity;
    if (there === undefined) {
      // It was cut off before its first answer. Behind a pooler it may wait for its turn.
      if (session.isIdentifying && (!here.isPooled || isLate(session))) dead.push(session);
      if (session.isIdentifying && !here.isPooled) orphaned.push(session);
      continue;
    }
    if (there.started === here.started) {
      const isWorking = rows.some((row) => isOf(session, row));
      (isWorking ? working : dead).push(session);
      // Behind a pooler the process is that of somebody else by now.
      if (!isWorking && !here.isPooled) orphaned.push(session);
    }
    // A cluster has one primary: the one of this connection is none any more. Replicas may share an address.
    else if (!there.isStandby && !here.isStandby) dead.push(session);
  }
  return { dead, working, orphaned };
}

/** Behind a pooler the process is any of the server's, and known by its statement. */
function isOf({ identity, processId, statement = '' }: Session, { pid, text, state }: Activity): boolean {
  if (identity?.isPooled !== true) return pid === processId;
  return state === 'disabled' || (text !== null && text !== '' && statement.startsWith(text));
}
