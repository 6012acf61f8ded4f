import { ruleResult } from '../../auth/rights/rule-result.ts';
import { errors, jwtVerify, type JWTPayload, type JWTVerifyOptions } from 'jose';
import type { Authenticator, AuthenticatorHost, AuthRequest } from '../../auth/request/authenticator.ts';
import type { ExternalIdentity, IdentityDirectory } from '../../auth/people/identity-directory.ts';
import type { Principal, User } from '../../auth/people/principal.ts';
import { judge } from '../../auth/rights/standing.ts';
import { StartUpError } from '../../app/check/start-up-error.ts';
import { systemClock } from '../../db/clock.ts';
import type { Db } from '../../db/engine/db.ts';
import { isStorableText } from '../../db/values/storable-text.ts';
import { isKitError } from '../../errors/kit-error.ts';
import { NotReady } from '../../middleware/health.ts';
import type { Counter } from '../../observe/metric-registry.ts';
import { bearerToken, type SignedToken } from './bearer-token.ts';
import { verifyProof } from './dpop-proof.ts';
import { IssuerKeys } from './issuer-keys.ts';
import { type Claims, type IssuerSettings, type JwtBearerOptions, readJwtBearerOptions } from './options.ts';
import { readKeys } from './read-keys.ts';
import { CHALLENGE, PROOF_CHALLENGE, type Refusal, refusalOf, REFUSALS, refused } from './refusal.ts';
import { digestOf, groupsOf, hasSecondFactor, newIdentity, scopeAtIssuer, scopesOf, tenantOf } from './token-claims.ts';

const SUBJECT_LENGTH_MAX = 255;
const OUTCOMES = ['accepted', 'failed', ...(Object.keys(REFUSALS) as Refusal[])] as const;

interface Metrics {
  readonly tokens: Counter<'issuer' | 'outcome'>;
  readonly reads: Counter<'issuer' | 'outcome'>;
}

/**
 * Authenticates with access tokens of identity providers: `Authorization: Bearer <JWT>`. A list of options accepts several issuers, chosen by
 * `iss`. Any other bearer value is left to the next authenticator. Needs the package `jose`.
 *
 * @example
 * ```ts
 * createApp({ authenticators: [jwtBearer({ issuer: 'https://id.example.com', audience: 'orders' })], mount });
 * ```
 */
export function jwtBearer(options: JwtBearerOptions | readonly JwtBearerOptions[]): Authenticator {
  const settings = readJwtBearerOptions(options);
  const provesKeys = settings.some(({ dpop }) => dpop !== false);
  let host: AuthenticatorHost | undefined;
  let metrics: Metrics | undefined;
  const now = (): Date => (host?.clock ?? systemClock).now();
  const issuers = new Map(settings.map((each) => [each.issuer, issuerOf(each, now, (fault, keys) => noteAttempt(each, fault, keys))]));

  function noteAttempt({ issuer }: IssuerSettings, fault: Error | null, keys: IssuerKeys): void {
    metrics?.reads.add({ issuer, outcome: fault === null ? 'succeeded' : 'failed' });
    if (fault === null) return;
    const effect = keys.hasKeys ? 'known keys stay valid' : 'tokens of this issuer cannot be verified';
    host?.log.warn({ err: fault, issuer }, `jwt: could not read the keys of the issuer; ${effect}`);
  }

  return {
    name: 'jwt',
    challenge: provesKeys ? [CHALLENGE, PROOF_CHALLENGE] : CHALLENGE,
    issuers: [...issuers.keys()],
    scopeAtIssuer: (scope, issuer) => {
      const found = settings.find((each) => each.issuer === issuer);
      return found === undefined ? undefined : scopeAtIssuer(scope, found);
    },
    securityScheme: {
      type: 'http',
      scheme: 'bearer',
      bearerFormat: 'JWT',
      description: `Access tokens of ${[...issuers.keys()].join(', ')}.`,
    },
    authenticate(request) {
      const presented = bearerToken(request.headers['authorization']);
      if (presented.kind === 'none') return null;
      if (presented.kind === 'too_long') throw refused('too_long');
      const issuer = issuers.get(presented.issuer);
      if (issuer === undefined || (presented.scheme === 'dpop' && issuer.settings.dpop === false)) return null;
      return authenticated(issuer, presented, request, host).then(
        (principal) => {
          metrics?.tokens.add({ issuer: presented.issuer, outcome: 'accepted' });
          return principal;
        },
        (error: unknown) => {
          metrics?.tokens.add({ issuer: presented.issuer, outcome: outcomeOf(error) });
          throw error;
        },
      );
    },
    install(app) {
      host = app;
      const provisioning = settings.filter(({ find }) => find === undefined);
      if (provisioning.length > 0 && app.identities === null)
        throw new StartUpError(
          provisioning.map(({ issuer }) => ({
            id: 'E006',
            message: `jwtBearer(): \`provision\` is set for ${issuer}, and no module stores users of identity providers.`,
            hint: 'Add accounts() to modules, or use `find: (claims, db) => user`.',
          })),
        );
      if (provesKeys && app.servers.length === 0)
        throw new StartUpError([
          {
            id: 'E006',
            message: 'jwtBearer(): `dpop` is set, and the URL of the API is not known. A proof names the URL of its request.',
            hint: 'Set API_SERVERS to the URL that clients use.',
          },
        ]);
      metrics = app.metrics === null ? undefined : declareMetrics(app.metrics, issuers);
    },
    healthChecks: Object.fromEntries(
      settings.map(({ issuer }, index) => [healthName(index), () => health(issuer, issuers.get(issuer)?.keys)]),
    ),
  };
}

interface Issuer {
  readonly settings: IssuerSettings;
  readonly keys: IssuerKeys;
  readonly rules: JWTVerifyOptions;
  readonly now: () => Date;
}

function issuerOf(settings: IssuerSettings, now: () => Date, onAttempt: (fault: Error | null, keys: IssuerKeys) => void): Issuer {
  const keys: IssuerKeys = new IssuerKeys({
    read: () => readKeys(settings),
    refreshMs: settings.refreshMs,
    now: () => now().getTime(),
    onAttempt: (fault) => onAttempt(fault, keys),
  });
  const { issuer, audience, algorithms, clockToleranceMs, typ } = settings;
  const rules: JWTVerifyOptions = {
    issuer,
    audience: [...audience],
    algorithms: [...algorithms],
    clockTolerance: Math.round(clockToleranceMs / 1000),
    requiredClaims: ['iss', 'aud', 'exp', 'iat', 'sub'],
    ...(typ === null ? {} : { typ }),
  };
  return { settings, keys, rules, now };
}

async function authenticated(
  issuer: Issuer,
  { token, scheme }: SignedToken,
  request: AuthRequest,
  host: AuthenticatorHost | undefined,
): Promise<Principal> {
  const { settings } = issuer;
  const { db } = request;
  const identities = host?.identities ?? null;
  const claims = await verifiedClaims(issuer, token, scheme);
  if (scheme === 'dpop') await proved(request, token, claims, settings, host as AuthenticatorHost);
  const user = await (settings.find === undefined
    ? provisionedUser(db, claims, settings, identities as IdentityDirectory)
    : foundUser(await settings.find(claims, db)));
  if (user === null) throw refused('unknown_user');
  if (judge({ user, wasDeleted: false, membership: undefined }) !== null) throw refused('inactive_user');
  const tenant = tenantOf(claims, settings);
  const factor = hasSecondFactor(claims, settings) ? 'proved' : identities?.needsSecondFactor(db, user) === true ? 'missing' : undefined;
  // No `credentialId`: a client that renews its token between two attempts must find its idempotency key again.
  return {
    user,
    scheme: 'jwt',
    scopes: scopesOf(claims, settings),
    claims,
    ...(tenant === undefined ? {} : { tenant }),
    ...(factor === undefined || settings.find !== undefined ? {} : { secondFactor: factor }),
  };
}

function foundUser(user: unknown): User | null {
  return ruleResult('user', 'find of jwtBearer()', user);
}

/** Requests whose proof was accepted. An open stream is authenticated again by the same request: its proof is not used a second time. */
const provedRequests = new WeakSet<AuthRequest>();

async function proved(
  request: AuthRequest,
  token: string,
  { cnf }: Claims,
  { dpop, clockToleranceMs }: IssuerSettings,
  host: AuthenticatorHost,
): Promise<void> {
  if (provedRequests.has(request)) return;
  const { jkt: thumbprint } = (cnf ?? {}) as { readonly jkt?: unknown };
  await verifyProof(request, { token, thumbprint, clockToleranceMs, needsNonce: dpop === 'nonce' }, host);
  provedRequests.add(request);
}

/** Only the holder of the key may use it (RFC 7800): without a proof a stolen token would do. A certificate of mTLS is proved to a proxy alone. */
function isUnproved(cnf: unknown, scheme: SignedToken['scheme'], { acceptBoundTokens }: IssuerSettings): boolean {
  if (scheme === 'bearer') return cnf !== undefined && !acceptBoundTokens;
  const names = typeof cnf === 'object' && cnf !== null ? Object.keys(cnf) : [];
  return names.length !== 1 || names[0] !== 'jkt';
}

async function verifiedClaims({ keys, rules, settings, now }: Issuer, token: string, scheme: SignedToken['scheme']): Promise<Claims> {
  try {
    const currentDate = now();
    const payload = await verifiedPayload(token, keys, { ...rules, currentDate });
    const { iat, sub } = payload;
    const issuedAt = new Date((iat as number) * 1000).getTime();
    // jose looks at `iat` only with a maximum age. A token from the future was made by a clock, or a person, that cannot be trusted.
    if (issuedAt > currentDate.getTime() + settings.clockToleranceMs) throw refused('not_yet_valid');
    if (Number.isNaN(issuedAt)) throw refused('claims');
    if (isUnproved(payload['cnf'], scheme, settings)) throw refused('bound');
    if (typeof sub !== 'string' || sub === '' || sub.length > SUBJECT_LENGTH_MAX || !isStorableText(sub)) throw refused('claims');
    return payload;
  } catch (error) {
    const refusal = refusalOf(error);
    throw refusal === null ? error : refused(refusal);
  }
}

/** Keys that are tried for one token: a provider has a few, and each costs the time of a signature. */
const KEYS_TRIED_MAX = 10;

/** A token without `kid` may be signed with any key of its kind: a provider without key ids has two of them while it rotates. */
async function verifiedPayload(token: string, keys: IssuerKeys, rules: JWTVerifyOptions): Promise<JWTPayload> {
  try {
    return (await jwtVerify(token, keys.find, rules)).payload;
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    let tried = 0;
    for await (const key of error) {
      if ((tried += 1) > KEYS_TRIED_MAX) break;
      try {
        return (await jwtVerify(token, key, rules)).payload;
      } catch (failure) {
        if (!(failure instanceof errors.JWSSignatureVerificationFailed)) throw failure;
      }
    }
    throw new errors.JWSSignatureVerificationFailed();
  }
}

/** One statement for a user who is known and whose groups have not changed. */
async function provisionedUser(db: Db, claims: Claims, settings: IssuerSettings, identities: IdentityDirectory): Promise<User> {
  const identity: ExternalIdentity = { issuer: settings.issuer, subject: claims['sub'] as string };
  const known = await identities.find(db, identity);
  const user = known?.user ?? (await identities.provision(db, newIdentity(claims, settings)));
  const names = groupsOf(claims, settings);
  if (names === null || !user.is_active) return user;
  const digest = digestOf(names);
  const issuedAt = new Date((claims['iat'] as number) * 1000);
  const isOlder = known !== null && known.groupsAt !== null && issuedAt < known.groupsAt;
  if (known?.groupsDigest !== digest && !isOlder) await identities.applyGroups(db, user, { ...identity, names, digest, issuedAt });
  return user;
}

function outcomeOf(error: unknown): (typeof OUTCOMES)[number] {
  const [, refusal] = isKitError(error) ? error.message.split('jwt: ') : [];
  return OUTCOMES.find((outcome) => outcome === refusal) ?? 'failed';
}

function declareMetrics(registry: NonNullable<AuthenticatorHost['metrics']>, issuers: ReadonlyMap<string, Issuer>): Metrics {
  const names = [...issuers.keys()];
  registry.gauge({
    name: 'kit_jwt_key_age_seconds',
    help: 'Time since the keys of the issuer were last read.',
    labels: { issuer: names },
    read: () =>
      [...issuers].flatMap(([issuer, { keys }]) => (keys.ageMs === null ? [] : [{ labels: { issuer }, value: keys.ageMs / 1000 }])),
  });
  return {
    tokens: registry.counter({
      name: 'kit_jwt_tokens_total',
      help: 'Access tokens, by outcome.',
      labels: { issuer: names, outcome: OUTCOMES },
    }),
    reads: registry.counter({
      name: 'kit_jwt_key_reads_total',
      help: 'Attempts to read the keys of the issuer.',
      labels: { issuer: names, outcome: ['succeeded', 'failed'] },
    }),
  };
}

/** Without the host name: whoever can read the health page need not learn where staff log in. */
function healthName(index: number): string {
  return index === 0 ? 'jwt_keys' : `jwt_keys_${index + 1}`;
}

async function health(issuer: string, keys: IssuerKeys | undefined): Promise<unknown> {
  await keys?.refreshed();
  if (keys?.hasKeys === false)
    throw new NotReady(
      'The keys of the identity provider cannot be read. Its access tokens are rejected.',
      `${issuer}: ${keys.fault?.message}`,
    );
  if (keys === undefined || keys.fault === null) return undefined;
  const minutes = Math.floor((keys.ageMs ?? 0) / 60_000);
  return {
    warning: `The identity provider has not responded; its keys were read ${minutes} minutes ago and stay valid. The log has the reason.`,
  };
}
