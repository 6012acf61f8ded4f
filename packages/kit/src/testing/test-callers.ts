import type { InjectOptions, LightMyRequestResponse } from 'fastify';
import type { App } from '../app/declare/module.ts';
import type { Authenticator } from '../auth/request/authenticator.ts';
import type { Principal, User } from '../auth/people/principal.ts';
import { readOptions } from '../options/read-options.ts';
import { filledText, listOf } from '../options/value-rule.ts';

/** A user of a test. Only the id is needed: the rest is an ordinary, active user called by its id. */
export type TestUser = Pick<User, 'id'> & Partial<User>;

export interface AsOptions {
  /** The scopes of the credential. Default: a credential that carries none. */
  readonly scopes?: readonly string[];
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
  readonly authenticators = (declared: readonly Authenticator[]): readonly Authenticator[] =>
    declared.length === 0
      ? [{ name: 'test', securityScheme: { type: 'apiKey', in: 'header', name: HEADER }, authenticate: (request) => this.#caller(request) }]
      : declared.map((authenticator) => this.#accepting(authenticator));

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

  client(app: App, given: TestUser, options: AsOptions = {}): TestClient {
    const { scopes = null } = readOptions('as()', options, { scopes: listOf(filledText) });
    if (typeof given?.id !== 'string') throw new TypeError('as() takes a user: { id }');
    const user: User = { username: given.id, email: null, is_active: true, is_staff: false, is_superuser: false, ...given };
    const token = crypto.randomUUID();
    this.#principals.set(token, { user, scheme: 'test', scopes });
    const inject = (request: InjectOptions) => app.inject({ ...request, headers: { ...request.headers, [HEADER]: token } });
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
}
