import { createHash } from 'node:crypto';
import type { NewIdentity } from '../../auth/people/identity-directory.ts';
import { ruleResult } from '../../auth/rights/rule-result.ts';
import type { Claims, IssuerSettings } from './options.ts';

/** Whether the person proved a second factor to the issuer. `mfa` is the word of RFC 8176 for it; `otp` alone may have been the only factor. */
export function hasSecondFactor(claims: Claims, { secondFactor: decide }: Pick<IssuerSettings, 'secondFactor'>): boolean {
  if (decide !== undefined) return (decide(claims) as unknown) === true;
  return Array.isArray(claims['amr']) && claims['amr'].includes('mfa');
}

/** RFC 8693 has `scope` as words in one string; Entra, Okta and others have `scp`, as words or as a list. */
export function scopesOf(claims: Claims, { scopes: mapping }: Pick<IssuerSettings, 'scopes'>): readonly string[] {
  if (typeof mapping === 'function') return ruleResult('token names', 'scopes of jwtBearer()', mapping(claims));
  const words = wordsOf(claims['scope'] ?? claims['scp']);
  return mapping === undefined ? words : words.filter((word) => word.startsWith(mapping)).map((word) => word.slice(mapping.length));
}

/** How clients ask the issuer for a scope of the app; undefined where a function maps its scopes. */
export function scopeAtIssuer(
  scope: string,
  { scopes: mapping, requestedScopePrefix }: Pick<IssuerSettings, 'scopes' | 'requestedScopePrefix'>,
): string | undefined {
  if (requestedScopePrefix !== undefined) return `${requestedScopePrefix}${scope}`;
  return typeof mapping === 'function' ? undefined : `${mapping ?? ''}${scope}`;
}

export function tenantOf(claims: Claims, { tenant: mapping }: Pick<IssuerSettings, 'tenant'>): string | null | undefined {
  if (mapping === undefined) return undefined;
  const found = typeof mapping === 'function' ? ruleResult('token tenant', 'jwtBearer()', mapping(claims)) : claims[mapping];
  return typeof found === 'string' && found !== '' ? found : null;
}

/** Null where the issuer's tokens do not decide about groups. */
export function groupsOf(claims: Claims, { groups: mapping }: Pick<IssuerSettings, 'groups'>): readonly string[] | null {
  if (mapping === undefined) return null;
  const names = typeof mapping === 'function' ? ruleResult('token names', 'groups of jwtBearer()', mapping(claims)) : claims[mapping];
  return [...new Set(wordsOf(names, false))].sort();
}

export function digestOf(names: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(names)).digest('hex');
}

/** What the user is created from. `email_verified` is a boolean, at some providers the string "true". */
export function newIdentity(
  claims: Claims,
  { issuer, linkVerifiedEmail }: Pick<IssuerSettings, 'issuer' | 'linkVerifiedEmail'>,
): NewIdentity {
  const subject = claims['sub'] as string;
  const email = typeof claims['email'] === 'string' ? claims['email'] : null;
  const emailVerified = claims['email_verified'] === true || claims['email_verified'] === 'true';
  const name = [claims['preferred_username'], email, claims['name'], subject].find((each) => typeof each === 'string' && each !== '');
  return { issuer, subject, username: name as string, email, emailVerified, linkVerifiedEmail };
}

function wordsOf(value: unknown, splits = true): string[] {
  if (typeof value === 'string') return splits ? value.split(' ').filter((word) => word !== '') : [value];
  return Array.isArray(value) ? value.filter((each): each is string => typeof each === 'string' && each !== '') : [];
}
