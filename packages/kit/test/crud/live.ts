import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { CrudController, resource, visibleTo } from '../../src/crud/index.ts';
import type { App, Module } from '../../src/app/declare/module.ts';
import { createTable, type Database, migration, model, softDelete, t, timestamps, versioned } from '../../src/db/index.ts';
import { isAuthenticated, isStaff, Permission } from '../../src/permissions/index.ts';
import { byName, people, type Person } from './shop.ts';
import { createApp } from '../../src/app/assemble/create-app.ts';

export const tickets = model('tickets', {
  id: t.uuidv7().pk(),
  org: t.text(20).readOnly(),
  owner_id: t.uuid().readOnly(),
  title: t.text(80),
  status: t.enum(['open', 'held', 'closed']).dbDefault('open'),
  level: t.int().dbDefault(0),
  due_at: t.timestamp().nullable(),
  count: t.bigint().dbDefault(0n),
  price: t.decimal(12, 2).nullable(),
  margin: t.int().dbDefault(0),
  secret: t.text(40).nullable().sensitive(),
  ...timestamps(),
  ...versioned(),
  ...softDelete(),
});

/** Rights that the tests change while streams are open: levels up to which a person sees rows, who sees `margin`, who may come in. */
export const rights = { level: new Map<string, number>(), margin: new Set<string>(), shut: new Set<string>() };
export function resetRights(): void {
  rights.level.clear();
  rights.margin.clear();
  rights.shut.clear();
}
const nameOf = ({ user }: { readonly user: { readonly username: string } | null }) => user?.username ?? '';
const seesMargin = new Permission({ name: 'seesMargin', evaluate: (context) => rights.margin.has(nameOf(context)) });
const isAdmitted = new Permission({ name: 'isAdmitted', evaluate: (context) => !rights.shut.has(nameOf(context)) });

export const ticketResource = resource(tickets, {
  tenant: 'org',
  owner: { column: 'owner_id', unless: isStaff },
  rows: ({ user }) => ({ level: { lte: rights.level.get(user.username) ?? 5 } }),
  fields: { margin: visibleTo(seesMargin) },
  softDelete: true,
  version: 'version',
});

export class TicketController extends CrudController(ticketResource, {
  permission: isAuthenticated.and(isAdmitted),
  filters: {
    status: ['eq', 'in', 'ne'],
    owner_id: ['eq'],
    title: ['contains', 'eq'],
    level: ['gte', 'lt'],
    due_at: ['isnull'],
    count: ['gte'],
    price: ['lt'],
  },
  search: ['title'],
  ordering: { by: ['title', 'level', 'price', 'count', 'due_at'] },
  bulk: { create: true, update: true, destroy: true },
  restore: true,
  page: { max: 1000 },
  live: true,
}) {}

export const ticketModule: Module = {
  name: 'tickets',
  models: [tickets],
  migrations: [migration('0001_tickets', [createTable('tickets', tickets.columns)])],
};

export interface LiveApp {
  readonly app: App;
  readonly url: string;
}

/** One process: an app with a port of its own on the database. */
export async function startLive(database: Database, more: Partial<Parameters<typeof createApp>[0]> = {}): Promise<LiveApp> {
  const app = createApp({
    database,
    authenticators: [byName],
    tenant: ({ user }) => (user === null ? null : people[user.username as Person].tenant),
    mount: { '/v1': { '/tickets': TicketController } },
    modules: [ticketModule],
    log: { level: 'silent' },
    settings: { shutdownTimeoutMs: 2_000 },
    ...more,
  });
  await app.listen({ port: 0 });
  return { app, url: `http://127.0.0.1:${(app.fastify.server.address() as AddressInfo).port}/v1/tickets` };
}

// oxlint-disable-next-line typescript/no-explicit-any -- tests look at whatever the server sends
type Json = any;

/** Sends a request as a person. */
export async function send(url: string, person: Person, method = 'GET', body?: unknown): Promise<{ status: number; body: Json }> {
  const response = await fetch(url, {
    method,
    headers: { 'x-user': person, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
}

export interface LiveEvent {
  readonly event: string;
  readonly id?: string;
  readonly data: Json;
}

/** Follows a list as a client does: events up to `ready` are applied together. */
export class Follower {
  readonly person: Person;
  readonly query: string;
  /** Everything that was received, without ids. */
  readonly log: LiveEvent[] = [];
  rows = new Map<string, Json>();
  batches = 0;
  lastEventId = '';
  status = 0;
  /** Of the process that it is or was connected to. */
  url = '';
  /** The terminal event, once there was one. */
  ended: LiveEvent | undefined;
  isClosed = false;
  #stop = new AbortController();
  #reading: Promise<void> = Promise.resolve();
  /** Called after each batch. */
  onBatch: (() => void) | undefined;

  readonly #headers: Readonly<Record<string, string>>;

  constructor(person: Person, query = '', headers: Readonly<Record<string, string>> = { 'x-user': person }) {
    this.person = person;
    this.query = query;
    this.#headers = headers;
  }

  /** Resolves when the response has begun. */
  async connect(url: string): Promise<this> {
    this.#stop = new AbortController();
    this.isClosed = false;
    this.url = url;
    const headers = {
      accept: 'text/event-stream',
      ...this.#headers,
      ...(this.lastEventId === '' ? {} : { 'last-event-id': this.lastEventId }),
    };
    const response = await fetch(`${url}${this.query}`, { headers, signal: this.#stop.signal });
    this.status = response.status;
    if (response.status === 200) this.#reading = this.#read(response).catch(() => undefined);
    else this.ended = { event: 'response', data: await response.json() };
    return this;
  }

  async disconnect(): Promise<void> {
    this.isClosed = true;
    this.#stop.abort();
    await this.#reading;
  }

  /** Waits until the server ended the stream. */
  async whenEnded(): Promise<LiveEvent | undefined> {
    await this.#reading;
    return this.ended;
  }

  async #read(response: Response): Promise<void> {
    let text = '';
    let pending: LiveEvent[] = [];
    const decoder = new TextDecoder();
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      text += decoder.decode(chunk, { stream: true });
      for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
        const event = parse(text.slice(0, end));
        text = text.slice(end + 2);
        if (event === undefined) continue;
        this.log.push({ event: event.event, data: event.data });
        if (event.event === 'error') this.ended = event;
        pending.push(event);
        if (event.event !== 'ready') continue;
        this.#apply(pending);
        pending = [];
      }
    }
  }

  #apply(events: readonly LiveEvent[]): void {
    for (const { event, data, id } of events) {
      if (event === 'reset') this.rows.clear();
      else if (event === 'upsert') this.rows.set(data.key as string, data.item);
      else if (event === 'remove') this.rows.delete(data.key as string);
      if (id !== undefined) this.lastEventId = id;
    }
    this.batches += 1;
    this.onBatch?.();
  }

  /** The list as this caller reads it. */
  async list(url: string): Promise<Map<string, Json> | null> {
    const { status, body } = await send(`${url}${this.query === '' ? '?' : `${this.query}&`}limit=1000`, this.person);
    return status === 200 ? new Map((body.items as Json[]).map((item) => [item.id as string, item])) : null;
  }

  /** Waits until the rows are those of the list. */
  async settled(url: string, ms = 15_000): Promise<void> {
    const until = Date.now() + ms;
    for (;;) {
      const [wanted, found] = [sorted(await this.list(url)), sorted(this.rows)];
      if (wanted === found) return;
      if (Date.now() > until)
        throw new Error(`${this.person}${this.query}: the rows are not those of the list.\nlist: ${wanted}\nrows: ${found}`);
      await delay(20);
    }
  }
}

function sorted(rows: ReadonlyMap<string, unknown> | null): string {
  return rows === null ? 'none' : JSON.stringify([...rows].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function parse(block: string): LiveEvent | undefined {
  const fields = new Map(
    block
      .split('\n')
      .flatMap((line) => (line.startsWith(':') ? [] : [[line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)] as const])),
  );
  const data = fields.get('data');
  if (data === undefined) return undefined;
  const id = fields.get('id');
  return { event: fields.get('event') ?? 'message', data: JSON.parse(data) as unknown, ...(id === undefined ? {} : { id }) };
}
