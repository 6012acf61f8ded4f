import { type TenantPlace, tenantNamesIn, tenantPlaces } from '../../app/tenants/tenant-places.ts';
import type { AuthRequest } from '../../auth/request/authenticator.ts';
import type { Exchange } from '../../http/exchange/exchange.ts';
import { type OptionRules, readOptions, requireArguments } from '../../options/read-options.ts';
import { aFunction, either, filledText, objectWith, wholeNumber } from '../../options/value-rule.ts';
import type { BetterAuthInstance } from './instance.ts';

type OrganizationRequest = Pick<AuthRequest, 'method' | 'url' | 'headers'>;

export interface BetterAuthOptions {
  /**
   * Where a request names its organization, by id or slug: `{ header: 'X-Team' }`, `{ path: 'team' }`, `{ subdomainOf: 'example.com' }` or a list of them,
   * which documents and generated clients have, too; or a function. Without a name, the active organization of the session. Default: the header
   * `X-Organization`.
   */
  readonly organization?: TenantPlace | readonly TenantPlace[] | ((request: OrganizationRequest) => string | null);
  /** The page where staff log in, for the admin site: a path, or an http(s) URL. It gets `return_to`. Default: the one of pages(); without it admin() needs `createApp({ login })`. */
  readonly loginUrl?: string;
  /** The page where people set up their second factor and change their password. Default: the one of pages(). */
  readonly accountUrl?: string;
  /** Most bytes of a request to better-auth. Default: 65,536. */
  readonly bodyBytesMax?: number;
}

export interface BetterAuthSettings extends Required<Pick<BetterAuthOptions, 'bodyBytesMax'>> {
  /** Undefined: only the function knows. */
  readonly places: readonly TenantPlace[] | undefined;
  /** The first name in the request. */
  readonly organization: (request: OrganizationRequest) => string | null;
  readonly loginUrl: string | null;
  readonly accountUrl: string | null;
}

const rules: OptionRules<BetterAuthOptions> = {
  organization: either('a place such as { header: "X-Organization" }, a list of them, or a function', tenantPlaces, aFunction),
  loginUrl: filledText,
  accountUrl: filledText,
  bodyBytesMax: wholeNumber(1, 16 * 1024 * 1024),
};

export function readBetterAuthOptions(auth: BetterAuthInstance, options: BetterAuthOptions): BetterAuthSettings {
  requireArguments('betterAuth()', { auth }, { auth: objectWith('an instance of better-auth: betterAuth({ … })', 'handler') });
  const given = readOptions('betterAuth()', options, rules);
  const { organization = { header: 'X-Organization' }, bodyBytesMax = 65_536, loginUrl = null, accountUrl = null } = given;
  const places = typeof organization === 'function' ? undefined : [organization].flat();
  return Object.freeze({
    places,
    organization: (request: OrganizationRequest) =>
      typeof organization === 'function' ? readable(organization(request)) : (tenantNamesIn(request as Exchange, places ?? [])[0] ?? null),
    bodyBytesMax,
    loginUrl,
    accountUrl,
  });
}

/** Ids have 32 characters; slugs are chosen by people. */
const NAME_LENGTH_MAX = 255;

/** An empty name asks for none. A name that no database can store is that of no organization: an empty id or slug does not exist. */
function readable(name: string | null | undefined): string | null {
  if (name === null || name === undefined || name === '') return null;
  return typeof name !== 'string' || name.length > NAME_LENGTH_MAX || name.includes('\0') ? '' : name;
}
