import type { Db } from '../../db/engine/db.ts';
import type { User } from '../../auth/people/principal.ts';
import type { Fault } from '../../options/fault.ts';
import { InvalidOptions, optionFaults, type OptionRules } from '../../options/read-options.ts';
import {
  aFunction,
  either,
  filledText,
  flag,
  guard,
  listOf,
  oneOf,
  required,
  sentenceRule,
  wholeNumber,
  wrongValue,
} from '../../options/value-rule.ts';

export type Claims = Readonly<Record<string, unknown>>;

export interface JwtBearerOptions {
  /** The `iss` of the tokens, character by character: `https://id.example.com/realms/shop`. */
  readonly issuer: string;
  /** What the provider calls this API. A token must have one of these in `aud`. */
  readonly audience: string | readonly string[];
  /** Where the keys are. Default: `jwks_uri` of the issuer's discovery document. */
  readonly jwksUri?: string;
  /** Signature algorithms. Default: RS256, PS256, ES256, EdDSA, Ed25519. */
  readonly algorithms?: readonly (typeof ALGORITHMS)[number][];
  /** The required `typ` of the header: `'at+jwt'` for access tokens of RFC 9068. Default: not checked. */
  readonly typ?: string;
  /** How far the clocks may differ. Default: 30,000. */
  readonly clockToleranceMs?: number;
  /** Scopes of the caller. A string is a prefix: scopes without it are left out, and the others lose it. Default: the words in `scope` or `scp`. */
  readonly scopes?: string | ((claims: Claims) => readonly string[]);
  /**
   * What clients put before a scope when they ask the provider for it, where its tokens have the scope without it: `'api://<client id>/'` of Entra ID.
   * The metadata of mcp() names scopes with it. Default: the prefix in `scopes`.
   */
  readonly requestedScopePrefix?: string;
  /** The user of a token, for applications with their own users. Null rejects the token. */
  readonly find?: (claims: Claims, db: Db) => User | null | Promise<User | null>;
  /** Creates a user of accounts() for each `iss` and `sub` that it has not seen. */
  readonly provision?: boolean;
  /** With `provision`: links a new `sub` to the existing user who has the e-mail address, if the provider has verified the address. Default: false. */
  readonly linkVerifiedEmail?: boolean;
  /** With `provision`: names of the user's groups. A string is the name of a claim. Only groups that are managed by this issuer change. */
  readonly groups?: string | ((claims: Claims) => readonly string[]);
  /**
   * With `provision`: whether the person proved a second factor. Staff who did not have no staff rights where accounts() requires one. Default:
   * `amr` of the token contains `mfa` (RFC 8176).
   */
  readonly secondFactor?: (claims: Claims) => boolean;
  /**
   * Accepts tokens that are bound to a key of the client (`cnf.jkt`), with a DPoP proof of each request (RFC 9449). `'nonce'`: a proof also needs a nonce
   * of this API, which the first 401 has. Needs API_SERVERS, and a throttle storage that all processes share. Default: false.
   */
  readonly dpop?: boolean | 'nonce';
  /**
   * Accepts tokens that are bound to a key of the client (`cnf`, as issued for DPoP and mTLS) as plain bearer tokens. The API does not verify the proof, so
   * a proxy in front must. Default: false, such tokens are rejected.
   */
  readonly acceptBoundTokens?: boolean;
  /** `principal.tenant`. A string is the name of a claim. */
  readonly tenant?: string | ((claims: Claims) => string | null);
  /** Keys are read again after this time. Default: 600,000. */
  readonly refreshMs?: number;
}

export const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'] as const;
const DEFAULT_ALGORITHMS: readonly (typeof ALGORITHMS)[number][] = ['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519'];

export interface IssuerSettings {
  readonly issuer: string;
  readonly audience: readonly string[];
  readonly jwksUri: string | null;
  readonly algorithms: readonly string[];
  readonly typ: string | null;
  readonly clockToleranceMs: number;
  readonly scopes: JwtBearerOptions['scopes'];
  readonly requestedScopePrefix: string | undefined;
  readonly find: JwtBearerOptions['find'];
  readonly linkVerifiedEmail: boolean;
  readonly groups: JwtBearerOptions['groups'];
  readonly secondFactor: JwtBearerOptions['secondFactor'];
  readonly acceptBoundTokens: boolean;
  readonly dpop: boolean | 'nonce';
  readonly tenant: JwtBearerOptions['tenant'];
  readonly refreshMs: number;
}

const provider = sentenceRule<unknown>((value) => providerUrlFault(value));

const rules: OptionRules<JwtBearerOptions> = {
  issuer: required(provider),
  audience: required(either('a non-empty string, or a list of them', filledText, listOf(filledText, { min: 1 }))),
  jwksUri: provider,
  algorithms: guard(listOf(oneOf(...ALGORITHMS), { min: 1 })),
  typ: guard(filledText),
  clockToleranceMs: wholeNumber(0, 300_000),
  scopes: guard(either('a prefix, or a function', filledText, aFunction)),
  requestedScopePrefix: filledText,
  find: aFunction,
  provision: flag,
  linkVerifiedEmail: flag,
  groups: either('the name of a claim, or a function', filledText, aFunction),
  secondFactor: guard(aFunction),
  acceptBoundTokens: guard(flag),
  dpop: guard(oneOf(true, false, 'nonce')),
  tenant: guard(either('the name of a claim, or a function', filledText, aFunction)),
  refreshMs: wholeNumber(1000, 86_400_000),
};

/** Why keys must not be read from this URL; null when they may be. Who can change what is read over plain http can issue tokens. */
export function providerUrlFault(value: unknown): string | null {
  const url = typeof value === 'string' ? URL.parse(value) : null;
  if (url === null) return `Expected the URL of an identity provider, such as "https://id.example.com", not ${JSON.stringify(value)}.`;
  if (url.username !== '' || url.password !== '' || url.hash !== '')
    return 'The URL of an identity provider has no credentials and no fragment.';
  if (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname))) return null;
  return `The URL of an identity provider must start with https://, except on this machine: ${JSON.stringify(value)}.`;
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
}

/** Complete and frozen; every problem of every issuer is reported together. */
export function readJwtBearerOptions(given: JwtBearerOptions | readonly JwtBearerOptions[]): readonly IssuerSettings[] {
  const each: readonly JwtBearerOptions[] = Array.isArray(given) ? given : [given];
  const faults = each.flatMap((options) => [...optionFaults('jwtBearer()', options, rules), ...combinationFaults(options)]);
  if (each.length === 0) faults.push(wrongValue('jwtBearer()', 'issuers', each, 'at least one issuer'));
  const issuers = each.map((options) => options?.issuer);
  for (const issuer of new Set(issuers.filter((one, index) => issuers.indexOf(one) !== index)))
    faults.push({
      id: 'E011',
      message: `jwtBearer(): the issuer ${JSON.stringify(issuer)} is given twice.`,
      hint: 'List several audiences in `audience`.',
    });
  if (faults.length > 0) throw new InvalidOptions(faults);
  return Object.freeze(each.map((options) => settingsOf(options)));
}

function combinationFaults(options: JwtBearerOptions): Fault[] {
  if (typeof options !== 'object' || options === null) return [];
  const faults: Fault[] = [];
  const wrong = (message: string, hint: string) => faults.push({ id: 'E011', message: `jwtBearer(): ${message}`, hint });
  if (options.find === undefined && options.provision !== true)
    wrong(
      'nothing defines the user of a token.',
      'Set `provision: true` with accounts(), or `find: (claims, db) => user` for your own users.',
    );
  if (options.find !== undefined && options.provision === true)
    wrong('`find` and `provision` are both set.', 'Use `provision` with accounts(), `find` with your own users.');
  if (options.provision !== true && (options.groups !== undefined || options.linkVerifiedEmail === true))
    wrong('`groups` and `linkVerifiedEmail` need `provision: true`.', 'Without accounts() assign groups where your users are.');
  if (options.provision !== true && options.secondFactor !== undefined)
    wrong('`secondFactor` needs `provision: true`.', 'Without accounts() decide in `find`: return a user without staff rights.');
  return faults;
}

function settingsOf(options: JwtBearerOptions): IssuerSettings {
  const { issuer, audience, scopes, find, groups, tenant } = options;
  return Object.freeze({
    issuer,
    audience: typeof audience === 'string' ? [audience] : [...audience],
    jwksUri: options.jwksUri ?? null,
    algorithms: [...(options.algorithms ?? DEFAULT_ALGORITHMS)],
    typ: options.typ ?? null,
    clockToleranceMs: options.clockToleranceMs ?? 30_000,
    scopes,
    requestedScopePrefix: options.requestedScopePrefix,
    find,
    linkVerifiedEmail: options.linkVerifiedEmail ?? false,
    groups,
    secondFactor: options.secondFactor,
    acceptBoundTokens: options.acceptBoundTokens ?? false,
    dpop: options.dpop ?? false,
    tenant,
    refreshMs: options.refreshMs ?? 600_000,
  });
}
