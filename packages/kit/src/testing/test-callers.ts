import type { InjectOptions, LightMyRequestResponse } from 'fastify';
import type { App } from '../app/declare/module.ts';
import type { Authenticator } from '../auth/request/authenticator.ts';
import type { Principal, User } from '../auth/people/principal.ts';
import { readOptions } from '../options/read-options.ts';
import { filledText, listOf, recordOf, text } from '../options/value-rule.ts';
import { namingTenant } from './named-tenant.ts';

/** A user of a test. Only the id is needed: the rest is an ordinary, active user called by its id. */
export type TestUser = Pick<User, 'id'> & Partial<User>;

export interface AsOptions {
  /** The scopes of the credential. Default: a credential that carries none. */
  readonly scopes?: readonly string[];
  /** The tenant that its requests name, by id or slug, where the app reads it: the header, `/t/:tenant` of a URL, the host name. */
  readonly tenant?: string;
  /** Headers of its requests, for apps that find the tenant in their own way. Those of a single request replace them. */
  readonly headers?: Readonly<Record<string, string>>;
}

type Headers = Readonly<Record<string, string>>;
type Sending = (url: string, payload?: unknown, headers?: Headers) => Promise<LightMyRequestResponse>;

/** Requests of one user, through the whole pipeline: throttles, permissions and tenants are asked as always. */
export interface TestClient {
  readonly user: User;
  readonly inject: (request: InjectOptions) => Promise<LightMyRequestResponse>;
  readonly get: (url: string, headers?: Headers) => Promise<LightMyRequestResponse>;
  readonly query: Sending;
  readonly post: Sending;
  readonly put: Sending;
  readonly patch: Sending;
  readonly delete: (url: string, headers?: Headers) => Promise<LightMyRequestResponse>;
}

const HEADER = 'x-kit-test-caller';

/** Users that a test acts as. Each gets a token that only this app knows. */
export class TestCallers {
  readonly #principals = new Map<string, Principal>();

  /** Every authenticator accepts a caller of the test first; without any there is one for them alone. */
  readonly authenticators = (declared: readonly Authenticator[]): readonly Authenticator[] => {
    // One that says which routes it calls is for those alone: sessions of links to the portal.
    const known = declared.map((each) => (each.callsRoute === undefined ? this.#accepting(each) : each));
    return known.some((each) => each.callsRoute === undefined) ? known : [this.#own(), ...known];
  };

  #own(): Authenticator {
    return {
      name: 'test',
      securityScheme: { type: 'apiKey', in: 'header', name: HEADER },
      authenticate: (request) => this.#caller(request),
    };
  }

  #caller({ headers }: { readonly headers: Readonly<Record<string, string | string[] | undefined>> }): Principal | null {
    return this.#principals.get(String(headers[HEADER])) ?? null;
  }

  #accepting(authenticator: Authenticator): Authenticator {
    const { name, challenge, securityScheme, raises, issuers } = authenticator;
    return {
      name,
      challenge,
      securityScheme,
      raises,
      issuers,
      authenticate: (request) => this.#caller(request) ?? authenticator.authenticate(request),
      install: (host) => authenticator.install?.(host),
      ...(authenticator.healthChecks === undefined ? {} : { healthChecks: authenticator.healthChecks }),
      ...(authenticator.verifyCsrf === undefined
        ? {}
        : {
            // A caller of the test has no cookie that a foreign page could send.
            verifyCsrf: (request, principal) =>
              this.#caller(request) === null ? authenticator.verifyCsrf?.(request, principal) : undefined,
          }),
    };
  }

  client(app: App, who: TestUser, options: AsOptions = {}): TestClient {
    const given = readOptions('as()', options, { scopes: listOf(filledText), tenant: filledText, headers: recordOf(text) });
    const { scopes = null } = given;
    if (typeof who?.id !== 'string') throw new TypeError('as() takes a user: { id }');
    const user: User = { username: who.id, email: null, is_active: true, is_staff: false, is_superuser: false, ...who };
    const token = crypto.randomUUID();
    this.#principals.set(token, { user, scheme: 'test', scopes });
    const inject = (request: InjectOptions) => app.inject({ ...request, ...this.#sent(app, request, given, token) });
    const sending =
      (method: string): Sending =>
      (url, payload, headers = {}) =>
        inject({
          method,
          url,
          headers,
          ...(payload === undefined ? {} : { payload: payload as object }),
        });
    return {
      user,
      inject,
      get: (url, headers) => sending('GET')(url, undefined, headers),
      query: sending('QUERY'),
      post: sending('POST'),
      put: sending('PUT'),
      patch: sending('PATCH'),
      delete: (url, headers) => sending('DELETE')(url, undefined, headers),
    };
  }

  /** What of a request is sent in the name of the caller. */
  #sent(app: App, request: InjectOptions, { tenant, headers }: AsOptions, token: string): InjectOptions {
    const { url } = request;
    const own = { ...lowerCased(headers), ...lowerCased(request.headers), [HEADER]: token };
    if (tenant === undefined || typeof url !== 'string') return { headers: own };
    const named = namingTenant(app, tenant, url);
    return { url: named.url, headers: { ...named.headers, ...own } };
  }
}

/** Names in one case, so that no header is sent twice. */
function lowerCased(headers: InjectOptions['headers'] = {}): NonNullable<InjectOptions['headers']> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
