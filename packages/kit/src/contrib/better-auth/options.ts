import type { AuthRequest } from '../../auth/request/authenticator.ts';
import { type OptionRules, readOptions, requireArguments } from '../../options/read-options.ts';
import { aFunction, filledText, objectWith, wholeNumber } from '../../options/value-rule.ts';
import type { BetterAuthInstance } from './instance.ts';

export interface BetterAuthOptions {
  /**
   * The organization that a request asks for, by id or slug: from a header, the path or the host name. Null: the active organization of the
   * session. Default: the header `X-Organization`.
   */
  readonly organization?: (request: Pick<AuthRequest, 'method' | 'url' | 'headers'>) => string | null;
  /** The page where staff log in, for the admin site: a path, or an http(s) URL. It gets `return_to`. Default: none, so admin() needs `createApp({ login })`. */
  readonly loginUrl?: string;
  /** The page where people set up their second factor and change their password. */
  readonly accountUrl?: string;
  /** Most bytes of a request to better-auth. Default: 65,536. */
  readonly bodyBytesMax?: number;
}

export interface BetterAuthSettings extends Required<Pick<BetterAuthOptions, 'organization' | 'bodyBytesMax'>> {
  readonly loginUrl: string | null;
  readonly accountUrl: string | null;
}

const rules: OptionRules<BetterAuthOptions> = {
  organization: aFunction,
  loginUrl: filledText,
  accountUrl: filledText,
  bodyBytesMax: wholeNumber(1, 16 * 1024 * 1024),
};

export function readBetterAuthOptions(auth: BetterAuthInstance, options: BetterAuthOptions): BetterAuthSettings {
  requireArguments('betterAuth()', { auth }, { auth: objectWith('an instance of better-auth: betterAuth({ … })', 'handler') });
  const given = readOptions('betterAuth()', options, rules);
  const { organization = fromHeader, bodyBytesMax = 65_536, loginUrl = null, accountUrl = null } = given;
  return Object.freeze({
    organization: (request: Parameters<typeof organization>[0]) => readable(organization(request)),
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

function fromHeader({ headers }: Pick<AuthRequest, 'headers'>): string | null {
  const value = headers['x-organization'];
  return typeof value === 'string' ? value : null;
}
