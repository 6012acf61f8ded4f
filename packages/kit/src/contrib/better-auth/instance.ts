import type { AuthRequest } from '../../auth/request/authenticator.ts';

/** A better-auth instance, as far as the module uses it: public members only. */
export interface BetterAuthInstance {
  readonly handler: (request: Request) => Promise<Response>;
  readonly options: object;
  readonly $context: Promise<unknown>;
}

interface Plugin {
  readonly id: string;
  readonly options?: Readonly<Record<string, unknown>> | undefined;
}

/** The options that decide something here. Everything else of better-auth is its own. */
export interface InstanceOptions {
  readonly baseURL?: unknown;
  readonly basePath?: string;
  readonly database?: unknown;
  readonly secondaryStorage?: unknown;
  readonly trustedOrigins?: readonly string[] | ((request?: Request) => readonly string[] | Promise<readonly string[]>);
  readonly plugins?: readonly Plugin[];
  readonly session?: { readonly storeSessionInDatabase?: boolean };
  readonly emailAndPassword?: {
    readonly enabled?: boolean;
    readonly disableSignUp?: boolean;
    readonly revokeSessionsOnPasswordReset?: boolean;
    readonly sendResetPassword?: unknown;
  };
  readonly advanced?: {
    readonly disableOriginCheck?: unknown;
    readonly disableCSRFCheck?: unknown;
    readonly ipAddress?: { readonly ipAddressHeaders?: readonly string[] };
    readonly database?: { readonly validateSchema?: boolean; readonly generateId?: unknown };
  };
}

export interface Field {
  readonly fieldName?: string;
  readonly references?: { readonly model: string };
  /** False: better-auth never shows it. */
  readonly returned?: boolean;
}

/** A table as better-auth knows it, with its plugins. */
export interface AuthTable {
  readonly modelName: string;
  readonly fields: Readonly<Record<string, Field>>;
}

/** What `$context` resolves to. */
export interface InstanceContext {
  readonly baseURL: string;
  readonly secret: string;
  readonly version: string;
  readonly options: InstanceOptions;
  readonly authCookies: { readonly sessionToken: { readonly name: string }; readonly sessionData: { readonly name: string } };
  readonly sessionConfig: { readonly freshAge: number };
  readonly tables: Readonly<Record<string, AuthTable>>;
  readonly skipOriginCheck: unknown;
  readonly skipCSRFCheck: unknown;
  isTrustedOrigin(this: { readonly trustedOrigins: readonly string[] }, url: string): boolean;
  readonly trustedOrigins: readonly string[];
  /** Rejects when the tables differ from what the instance writes. */
  explicitSchemaCheck?(): Promise<unknown>;
}

export const DEFAULT_BASE_PATH = '/api/auth';

export function optionsOf(auth: BetterAuthInstance): InstanceOptions {
  return auth.options;
}

export function pluginOf({ plugins = [] }: InstanceOptions, id: string): Plugin | undefined {
  return plugins.find((plugin) => plugin.id === id);
}

/** Where the routes of the instance are: the path of `baseURL`, else `basePath`. */
export function basePathOf({ baseURL, basePath }: InstanceOptions): string {
  const path = typeof baseURL === 'string' ? (URL.parse(baseURL)?.pathname ?? '/') : '/';
  const chosen = path === '/' ? (basePath ?? DEFAULT_BASE_PATH) : path;
  return `/${chosen.replaceAll(/^\/+|\/+$/g, '')}`;
}

/** Whether the pages of an origin may send unsafe requests with the cookie: by better-auth's own list. */
export async function isTrustedOrigin(context: InstanceContext, origin: string, request: AuthRequest): Promise<boolean> {
  if (context.isTrustedOrigin(origin)) return true;
  const { trustedOrigins } = context.options;
  if (typeof trustedOrigins !== 'function') return false;
  const headers = new Headers(Object.entries(request.headers).filter((each): each is [string, string] => typeof each[1] === 'string'));
  const listed = await trustedOrigins(new Request(context.baseURL, { headers }));
  return context.isTrustedOrigin.call({ trustedOrigins: listed.filter(Boolean) }, origin);
}
