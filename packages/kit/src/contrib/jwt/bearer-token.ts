/** Real tokens have 1,000 to 5,000 characters. A longer one is refused before anything of it is decoded. */
export const TOKEN_LENGTH_MAX = 16_384;

/** Three parts of base64url: a signed JWT. API keys and opaque tokens have another form. */
const SIGNED_JWT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*$/;

/** Nothing of it is verified: the issuer only chooses the rules. */
export interface SignedToken {
  readonly kind: 'jwt';
  readonly token: string;
  readonly issuer: string;
  /** `dpop`: with a proof that the client has the key of the token. */
  readonly scheme: 'bearer' | 'dpop';
}

export type BearerToken = { readonly kind: 'none' } | { readonly kind: 'too_long' } | SignedToken;

const NONE: BearerToken = { kind: 'none' };

/** The signed JWT in an `Authorization` header. Any other value may belong to another authenticator. */
export function bearerToken(header: string | readonly string[] | undefined): BearerToken {
  const [given, scheme] = (typeof header === 'string' && /^(bearer|dpop) /i.exec(header)) || [];
  if (given === undefined || scheme === undefined) return NONE;
  const token = String(header).slice(given.length).trim();
  if (token.length > TOKEN_LENGTH_MAX) return token.slice(0, TOKEN_LENGTH_MAX).includes('.') ? { kind: 'too_long' } : NONE;
  if (!SIGNED_JWT.test(token)) return NONE;
  const issuer = issuerOf(token);
  return issuer === null ? NONE : { kind: 'jwt', token, issuer, scheme: scheme.toLowerCase() as 'bearer' | 'dpop' };
}

function issuerOf(token: string): string | null {
  try {
    const [, payload = ''] = token.split('.');
    const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'));
    const issuer = typeof claims === 'object' && claims !== null ? (claims as { iss?: unknown }).iss : undefined;
    return typeof issuer === 'string' ? issuer : null;
  } catch {
    return null;
  }
}
