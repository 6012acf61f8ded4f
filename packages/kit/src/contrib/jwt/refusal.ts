import { errors } from 'jose';
import { coreErrors } from '../../errors/core-errors.ts';
import type { KitError } from '../../errors/kit-error.ts';
import { TOKEN_LENGTH_MAX } from './bearer-token.ts';

export const CHALLENGE = 'Bearer realm="api"';

/** Signature algorithms of proofs: their key is in them. */
export const PROOF_ALGORITHMS: readonly string[] = ['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519', 'PS256', 'RS256'];
export const PROOF_CHALLENGE = `DPoP realm="api", algs="${PROOF_ALGORITHMS.join(' ')}"`;

/** Why a token is rejected. The names are labels of a metric. */
export const REFUSALS = {
  too_long: `The access token is longer than ${TOKEN_LENGTH_MAX} characters.`,
  malformed: 'The access token is malformed.',
  algorithm: 'The access token is signed with an algorithm that is not accepted.',
  unknown_key: 'The access token is signed with a key that its issuer does not publish.',
  signature: 'The signature of the access token is wrong.',
  expired: 'The access token has expired.',
  not_yet_valid: 'The access token is not valid yet.',
  audience: 'The access token is for another audience.',
  claims: 'The access token lacks a required claim, or a claim is wrong.',
  bound: 'The access token is bound to a key of the client, and came without a proof that this API accepts.',
  proof: 'The DPoP proof is missing, wrong, of another request, or too old.',
  replayed: 'The DPoP proof was used before.',
  nonce: 'The DPoP proof needs the nonce of this response.',
  unknown_user: 'The user of the access token is not known here.',
  inactive_user: 'The user of the access token is deactivated.',
} as const;

export type Refusal = keyof typeof REFUSALS;

/** Codes of RFC 9449 for faults of a proof. */
const PROOF_ERRORS: Partial<Readonly<Record<Refusal, string>>> = {
  proof: 'invalid_dpop_proof',
  replayed: 'invalid_dpop_proof',
  nonce: 'use_dpop_nonce',
};

/** The 401 of RFC 6750 and RFC 9449: the sentence is in the body and in the challenge. */
export function refused(refusal: Refusal, headers: Readonly<Record<string, string>> = {}): KitError {
  const detail = REFUSALS[refusal];
  const proofError = PROOF_ERRORS[refusal];
  const challenge = proofError === undefined ? `${CHALLENGE}, error="invalid_token"` : `${PROOF_CHALLENGE}, error="${proofError}"`;
  return coreErrors.invalid_credentials({
    detail,
    message: `jwt: ${refusal}`,
    headers: { 'www-authenticate': `${challenge}, error_description="${detail}"`, ...headers },
  });
}

/** jose checks claims after the signature, so a sentence about claims tells nothing about a forged token. */
export function refusalOf(error: unknown): Refusal | null {
  if (error instanceof errors.JWTExpired) return 'expired';
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.claim === 'aud' && error.reason === 'check_failed') return 'audience';
    return error.claim === 'nbf' && error.reason === 'check_failed' ? 'not_yet_valid' : 'claims';
  }
  if (error instanceof errors.JOSEAlgNotAllowed || error instanceof errors.JOSENotSupported) return 'algorithm';
  if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys) return 'unknown_key';
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'signature';
  return error instanceof errors.JOSEError ? 'malformed' : null;
}
