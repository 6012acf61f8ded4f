/** Real tokens have 1,000 to 5,000 characters. A longer one is refused before anything of it is decoded. */
export const TOKEN_LENGTH_MAX = 16_384;

/** Three parts of base64url: a signed JWT. API keys and opaque tokens have another form. */
const SIGNED_JWT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*$/;

export type BearerToken =
  | { readonly kind: 'none' }
  | { readonly kind: 'too_long' }
  /** Nothing of it is verified: the issuer only chooses the rules. */
  | { readonly kind: 'jwt'; readonly token: string; readonly issuer: string };

const NONE: BearerToken = { kind: 'none' };

/** The signed JWT in an `Authorization` header. Any other value may belong to another authenticator. */
export function bearerToken(header: string | readonly string[] | undefined): BearerToken {
  if (typeof header !== 'string' || !/^bearer /i.test(header)) return NONE;
  const token = header.slice('bearer '.length).trim();
  if (token.length > TOKEN_LENGTH_MAX) return token.slice(0, TOKEN_LENGTH_MAX).includes('.') ? { kind: 'too_long' } : NONE;
  if (!SIGNED_JWT.test(token)) return NONE;
  const issuer = issuerOf(token);
  return issuer === null ? NONE : { kind: 'jwt', token, issuer };
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
