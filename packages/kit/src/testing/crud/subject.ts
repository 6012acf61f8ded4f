import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { LightMyRequestResponse } from 'fastify';
import { mountedResourceOf } from '../../crud/serve/controller.ts';
import type { MountedResource } from '../../crud/mount/mounted-resource.ts';
import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';
import { sample } from '../sample/sample.ts';
import { namingTenant } from '../named-tenant.ts';
import type { TestApp } from '../test-app.ts';
import type { AsOptions, TestClient, TestUser } from '../test-callers.ts';

/** A user, and the tenant that the user's requests name: `{ id, tenant: 'acme' }`, or `{ id, headers }` where the app finds it in its own way. */
export type CrudCaller = TestUser & Pick<AsOptions, 'tenant' | 'headers'>;

/** Who asks in the checks. */
export interface CrudCallers {
  /** Makes rows and sees them. */
  readonly owner: CrudCaller;
  /** Sees none of the owner's rows: another owner, or a member of another tenant. Left out where everybody sees every row. */
  readonly stranger?: CrudCaller;
  /** Has no tenant. For resources that have one. */
  readonly tenantless?: CrudCaller;
}

export interface SubjectOptions {
  readonly callers: CrudCallers;
  readonly input?: ((number: number, app: TestApp, owner: TestClient) => object | Promise<object>) | undefined;
  readonly make?: ((number: number, app: TestApp) => Promise<string>) | undefined;
  readonly path?: string | undefined;
}

export interface Answer {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- whatever the server answered
  readonly body: any;
  readonly text: string;
  readonly headers: LightMyRequestResponse['headers'];
}

export type Item = Readonly<Record<string, unknown>>;

/** A made row: its key as the address has it, and what its owner sees of it. */
export interface Made {
  readonly key: string;
  readonly item: Item;
  readonly input: Item;
}

/** The resource under test: a mounted controller, its callers, and how its rows are made. */
export class CrudSubject {
  readonly app: TestApp;
  readonly operations: MountedResource;
  readonly #creator: TestClient;
  readonly owner: TestClient;
  readonly stranger: TestClient | undefined;
  readonly tenantless: TestClient | undefined;
  /** The stranger, naming the tenant of the owner. */
  readonly intruder: TestClient | undefined;
  /** The stranger, naming a tenant that does not exist. */
  readonly lost: TestClient | undefined;
  readonly #routes: ReadonlyMap<string, CompiledRoute>;
  readonly #options: SubjectOptions;
  readonly #callers: CrudCallers;
  readonly #base: string;
  /** The path as the app mounts it, with the names of its parameters. */
  readonly #mounted: string;
  #number = 0;

  constructor(app: TestApp, controller: abstract new () => object, options: SubjectOptions) {
    this.app = app;
    this.#options = options;
    const mounted = app.app.controllers.find((each) => each instanceof controller);
    const operations = mounted === undefined ? undefined : mountedResourceOf(mounted);
    if (mounted === undefined || operations === undefined)
      throw new Error(`crudTests: ${controller.name} is no CrudController() that the app mounts.`);
    this.operations = operations;
    const own = app.app.routes.filter(({ controller: name, route }) => name === controller.name && hasRoute(mounted, route));
    this.#routes = new Map(own.map((route) => [route.field, route]));
    const path = (this.#mounted =
      own.map((route) => route.path.replace(/\/:id(\/.*)?$/, '')).toSorted((a, b) => a.length - b.length)[0] ?? '');
    this.#base = options.path ?? path;
    const named = new Set(app.app.tenantPlaces.flatMap((place) => ('path' in place ? [`:${place.path}`] : [])));
    if (this.#base.split('/').some((part) => part.startsWith(':') && !named.has(part)))
      throw new Error(`crudTests: ${path} has parameters: give the address as { path }.`);
    const scopes = [...new Set(own.flatMap(({ scope }) => scope ?? []))];
    const ofResource = scopes.length === 0 ? {} : { scopes };
    const as = ({ tenant, headers, ...user }: CrudCaller, credential: { readonly scopes?: readonly string[] } = ofResource) =>
      app.as(user, { ...credential, ...(tenant === undefined ? {} : { tenant }), ...(headers === undefined ? {} : { headers }) });
    this.#callers = options.callers;
    const { owner, stranger, tenantless } = options.callers;
    this.owner = as(owner);
    // What a row refers to is of other resources, which have scopes of their own.
    this.#creator = as(owner, { scopes: ['*'] });
    this.stranger = stranger === undefined ? undefined : as(stranger);
    this.tenantless = tenantless === undefined ? undefined : as(tenantless);
    const isNamed = owner.tenant !== undefined || owner.headers !== undefined;
    if (stranger === undefined || stranger.id === owner.id || !isNamed) return;
    const { tenant: _own, headers: _headers, ...user } = stranger;
    const { tenant, headers } = owner;
    this.intruder = as({ ...user, ...(tenant === undefined ? {} : { tenant }), ...(headers === undefined ? {} : { headers }) });
    if (tenant !== undefined) this.lost = as({ ...user, tenant: 'no-tenant-has-this-name' });
  }

  has(...fields: readonly string[]): boolean {
    return fields.every((field) => this.#routes.has(field));
  }

  /** The path of a route below the collection: `/:id/restore`. */
  restOf({ path }: CompiledRoute): string {
    return path.slice(this.#mounted.length);
  }

  get routes(): Iterable<CompiledRoute> {
    return this.#routes.values();
  }

  /** The key as a member of what is shown. */
  get key(): string {
    return this.operations.lookup.name;
  }

  url(rest = ''): string {
    return `${this.#base}${rest}`;
  }

  /** Where the owner finds it: with the owner's tenant, where the path names it. */
  located(rest = ''): string {
    const { tenant } = this.#callers.owner;
    return tenant === undefined ? this.url(rest) : namingTenant(this.app.app, tenant, this.url(rest)).url;
  }

  async call(
    client: TestClient | null,
    method: string,
    rest: string,
    payload?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer> {
    const request = {
      method: method as 'GET',
      url: rest.startsWith('/v') && rest.startsWith(this.#base) ? rest : this.url(rest),
      headers: { ...(method === 'POST' ? this.#newKey : {}), ...headers },
      ...(payload === undefined ? {} : { payload: payload as object }),
    };
    const response = await (client === null ? this.app.inject(request) : client.inject(request));
    const type = response.headers['content-type'] ?? '';
    const isJson = type.includes('json') && !type.includes('ndjson') && response.body !== '';
    return {
      status: response.statusCode,
      body: isJson ? (JSON.parse(response.body) as unknown) : undefined,
      text: response.body,
      headers: response.headers,
    };
  }

  /** Requests that are not repeated have a key each, where one is required. */
  get #newKey(): Record<string, string> {
    return this.operations.options.idempotency === 'required' ? { 'idempotency-key': randomUUID() } : {};
  }

  /** The call must have this status; the error says what was answered instead. */
  async expect(
    status: number,
    client: TestClient | null,
    method: string,
    rest: string,
    payload?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Answer> {
    const answer = await this.call(client, method, rest, payload, headers);
    check(
      answer.status === status,
      `${method} ${this.url(rest)} answered ${answer.status} instead of ${status}: ${answer.text.slice(0, 400)}`,
    );
    return answer;
  }

  async input(): Promise<Item> {
    this.#number += 1;
    const { input } = this.#options;
    if (input !== undefined) return (await input(this.#number, this.app, this.#creator)) as Item;
    const body = this.#routes.get('create')?.body;
    if (body === undefined) throw new Error('crudTests: without a create operation rows come from { make }.');
    return sample(body.json as never, { seed: this.#number, optional: 'none' }) as Item;
  }

  /** A new row of the owner. */
  async make(): Promise<Made> {
    const { make } = this.#options;
    if (make !== undefined) {
      const key = await make((this.#number += 1), this.app);
      return { key, item: (await this.expect(200, this.owner, 'GET', `/${key}`)).body as Item, input: {} };
    }
    const input = await this.input();
    const made = await this.call(this.owner, 'POST', '', input);
    if (made.status !== 201)
      throw new Error(
        `crudTests: POST ${this.url()} answered ${made.status}. Give { input } that makes a valid body. Sent: ${JSON.stringify(input)}. Answer: ${made.text}`,
      );
    return { key: String(made.body[this.key]), item: made.body as Item, input };
  }

  async makeSeveral(count: number): Promise<Made[]> {
    const made: Made[] = [];
    for (let index = 0; index < count; index += 1) made.push(await this.make());
    return made;
  }

  /** Changes that are valid for the row: one column of a new input. Undefined when no column of the input is offered for changes. */
  async changes(): Promise<Item | undefined> {
    if (!this.#routes.has('partialUpdate')) return undefined;
    // A key that clients choose is chosen once.
    const { input, policy } = this.operations;
    const known = new Set(input.filter((name) => !policy.model.primaryKey.includes(name)));
    const first = Object.entries(await this.input()).find(([name, value]) => known.has(name) && value !== null);
    return first === undefined ? undefined : { [first[0]]: first[1] };
  }

  /** What a change must send to pass `etag: 'required'` whatever the row's version. */
  get anyVersion(): Record<string, string> {
    return this.operations.options.etag === 'required' ? { 'if-match': '*' } : {};
  }

  /** A key of the right kind that no row has, and a text that is not a key. */
  get unknownKeys(): readonly string[] {
    const { kind } = this.operations.policy.settingsOf(this.operations.lookup.name);
    if (kind === 'int' || kind === 'bigint') return ['2147483001', 'not-a-key'];
    return kind === 'uuid' ? ['01890000-0000-7000-8000-000000000000', 'not-a-key'] : ['no-row-has-this-key'];
  }
}

/** One guarantee of every resource. */
export interface CrudCheck {
  readonly name: string;
  /** Whether the resource offers what the guarantee is about. */
  readonly appliesTo: (subject: CrudSubject) => boolean;
  readonly run: (subject: CrudSubject) => Promise<void>;
}

function hasRoute(controller: object, route: object): boolean {
  return Object.values(controller).includes(route);
}

export function check(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new Error(otherwise);
}

export function checkEqual(actual: unknown, expected: unknown, otherwise: string): void {
  check(isDeepStrictEqual(actual, expected), `${otherwise}\nactual:   ${JSON.stringify(actual)}\nexpected: ${JSON.stringify(expected)}`);
}

/** An answer without what differs between two equal requests. */
export function anonymised({ status, text }: Answer): string {
  return `${status} ${text.replaceAll(/"request_id":"[^"]*"/g, '').replaceAll(/"(next|previous)":"[^"]*"/g, '')}`;
}
