import type { App } from '../../../app/declare/module.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import type { KitError } from '../../../errors/kit-error.ts';
import { Controller } from '../../../http/compile/controller.ts';
import type { Exchange } from '../../../http/exchange/exchange.ts';
import { jsonSchema } from '../../../http/declare/json-schema.ts';
import { route } from '../../../http/declare/route.ts';
import { exchangeOf } from '../../../http/serve/serve-route.ts';
import { allowAny } from '../../../permissions/built-ins.ts';
import type { McpSettings } from '../options.ts';
import type { CallerTools } from '../tools/caller-tools.ts';

const WELL_KNOWN = '/.well-known/oauth-protected-resource';

/** RFC 9728. */
export interface ResourceMetadata {
  readonly resource: string;
  readonly resource_name: string;
  readonly authorization_servers: readonly string[];
  readonly bearer_methods_supported: readonly string[];
  readonly scopes_supported: readonly string[];
}

/** The endpoint as a resource that access tokens are issued for. */
export class ProtectedResource {
  readonly #app: App;
  readonly #path: string;
  readonly #issuers: readonly string[];
  /** Of the authenticators that accept access tokens: one of each scheme. */
  readonly #challenges: readonly string[];
  readonly #audience: readonly string[] | undefined;
  readonly #scopes: readonly string[];

  constructor(app: App, { path, audience }: Pick<McpSettings, 'path' | 'audience'>, tools: CallerTools) {
    this.#app = app;
    this.#path = path;
    this.#audience = audience;
    this.#issuers = [...new Set(app.authenticators.flatMap(({ issuers = [] }) => issuers))];
    const tokens = app.authenticators.filter(({ issuers = [] }) => issuers.length > 0);
    this.#challenges = [...new Set(tokens.flatMap(({ challenge = [] }) => challenge))];
    const scopes = [...tools.routes].flatMap(({ scope }) => scope ?? []);
    this.#scopes = [...new Set(scopes.flatMap((scope) => this.#issuers.flatMap((issuer) => this.#spelled(scope, issuer))))].toSorted();
  }

  /** A scope as clients ask the issuer for it. Empty where the app cannot know. */
  #spelled(scope: string, issuer: unknown): readonly string[] {
    const authenticator = this.#app.authenticators.find(({ issuers = [] }) => issuers.includes(issuer as string));
    const spelled = authenticator?.scopeAtIssuer === undefined ? scope : authenticator.scopeAtIssuer(scope, issuer as string);
    return spelled === undefined ? [] : [spelled];
  }

  /** Undefined where the app accepts no access tokens. */
  metadata(exchange: Exchange): ResourceMetadata | undefined {
    if (this.#issuers.length === 0) return undefined;
    return {
      resource: this.url(exchange),
      resource_name: this.#app.title,
      authorization_servers: this.#issuers,
      bearer_methods_supported: ['header'],
      scopes_supported: this.#scopes,
    };
  }

  /** A 401 says where a client finds out how to get a token. */
  challenge(exchange: Exchange): void {
    const { reply } = exchange;
    if (reply.statusCode !== 401 || this.#issuers.length === 0) return;
    const given = reply.getHeader('www-authenticate');
    const isFault = typeof given === 'string' && /^(?:Bearer|DPoP) .*error=/.test(given);
    const scope = this.#scopes.length === 0 ? '' : `, scope="${this.#scopes.join(' ')}"`;
    const added = `, resource_metadata="${this.#metadataUrl(exchange)}"${scope}`;
    reply.header('www-authenticate', (isFault ? [given] : this.#challenges).map((challenge) => challenge + added).join(', '));
  }

  /** A token for another service, even of this app, is not accepted (RFC 8707): whoever received it could use it here. */
  refuseForeignToken(exchange: Exchange): void {
    const claims = exchange.principal?.claims;
    if (claims === undefined) return;
    const audience: readonly unknown[] = Array.isArray(claims['aud']) ? claims['aud'] : [claims['aud']];
    const accepted = this.#audience ?? [this.url(exchange)];
    if (audience.some((each) => typeof each === 'string' && accepted.includes(each))) return;
    const detail = 'The access token is for another audience.';
    throw coreErrors.invalid_credentials({
      detail,
      headers: { 'www-authenticate': `Bearer realm="api", error="invalid_token", error_description="${detail}"` },
    });
  }

  /** An access token with more scopes would do. */
  insufficientScope(exchange: Exchange, scope: string): KitError {
    const asked = this.#spelled(scope, exchange.principal?.claims?.['iss']).map((each) => `, scope="${each}"`);
    const challenge = `Bearer realm="api", error="insufficient_scope"${asked.join('')}, resource_metadata="${this.#metadataUrl(exchange)}"`;
    return coreErrors.insufficient_scope({ extensions: { required_scope: scope }, headers: { 'www-authenticate': challenge } });
  }

  /** Where clients connect, as this request names the server. */
  url(exchange: Pick<Exchange, 'headers' | 'request'>): string {
    return `${this.#server(exchange)}${this.#path}`;
  }

  #metadataUrl(exchange: Pick<Exchange, 'headers' | 'request'>): string {
    return `${this.#server(exchange)}${WELL_KNOWN}${this.#path}`;
  }

  /** The first of API_SERVERS, with the path that a proxy removes; without them, the host that the client asked, which was checked. */
  #server({ headers, request }: Pick<Exchange, 'headers' | 'request'>): string {
    const asked = `${'encrypted' in request.raw.socket ? 'https' : 'http'}://${String(headers['host'])}`;
    const [given = asked] = this.#app.settings.apiServers;
    const { origin, pathname } = new URL(given, asked);
    return `${origin}${pathname.endsWith('/') ? pathname.slice(0, -1) : pathname}`;
  }
}

/** The metadata at the root, and below it at the path of the endpoint: clients ask for both. */
export function metadataMounts(path: string, resource: () => ProtectedResource | undefined): Readonly<Record<string, Controller>> {
  class KitMcpResourceController extends Controller {
    static override readonly tags = ['mcp'];

    read = route.get(
      '/',
      {
        permission: allowAny,
        auth: [],
        response: jsonSchema<ResourceMetadata>({}),
        hidden: true,
        tool: false,
        summary: 'Protected resource metadata',
      },
      ({ request }) => {
        const found = resource()?.metadata(exchangeOf(request));
        if (found === undefined) throw coreErrors.not_found();
        return found;
      },
    );
  }
  class KitMcpRootResourceController extends KitMcpResourceController {}
  return { [`${WELL_KNOWN}${path}`]: new KitMcpResourceController(), [WELL_KNOWN]: new KitMcpRootResourceController() };
}
