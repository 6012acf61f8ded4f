import type { Authenticator, AuthRequest } from '../../../auth/request/authenticator.ts';
import type { Principal, User } from '../../../auth/people/principal.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import type { Db } from '../../../db/engine/db.ts';
import { type ApiKey, EVERY_TENANT } from '../key/api-key.ts';
import { API_KEY_SCHEME, rememberApiKey } from './current-key.ts';
import { apiKeyErrors } from '../errors.ts';
import { keyringOf } from '../verify/keyring.ts';
import { keyState } from '../key/state.ts';
import { findKeysWithOwners } from '../rows/store.ts';
import { verifyApiKey } from '../verify/verify.ts';

/** A caller that presents too many bad keys is throttled. */
const RAISES = [apiKeyErrors.invalid_api_key, coreErrors.throttled];

/** Reads the key from the header `X-API-Key`. */
export class ApiKeyAuth implements Authenticator {
  readonly name = 'api_key';
  /** Not a registered scheme, but a 401 must name one, and a browser opens no dialog for it. */
  readonly challenge = 'ApiKey realm="api", header="X-API-Key"';
  readonly securityScheme = { type: 'apiKey', in: 'header', name: 'X-API-Key', description: 'A scoped API key.' };
  readonly raises = RAISES;

  authenticate(request: AuthRequest): null | Promise<Principal> {
    const raw = request.headers['x-api-key'];
    // The value of this header is always meant to be a key. Sent twice, the values arrive as one text, which is not a valid key.
    return raw === undefined ? null : authenticated(request, raw, true, this.challenge);
  }

  principalsOf(db: Db, keyIds: readonly string[]): Promise<ReadonlyMap<string, Principal>> {
    return principalsOf(db, keyIds);
  }
}

/** Reads the key from `Authorization: Bearer <key>`. */
export class ApiKeyBearer implements Authenticator {
  readonly name = 'api_key_bearer';
  readonly challenge = 'Bearer realm="api"';
  readonly securityScheme = { type: 'http', scheme: 'bearer', description: 'A scoped API key.' };
  readonly raises = RAISES;

  authenticate(request: AuthRequest): null | Promise<Principal> {
    const header = request.headers['authorization'];
    if (typeof header !== 'string' || !/^bearer /i.test(header)) return null;
    const raw = header.slice('bearer '.length).trim();
    // A token of another kind is refused too, unless another authenticator knows it; but it is no attempt to guess a key.
    return authenticated(request, raw, raw.startsWith(`${keyringOf(request.db).tag}_`), this.challenge);
  }

  principalsOf(db: Db, keyIds: readonly string[]): Promise<ReadonlyMap<string, Principal>> {
    return principalsOf(db, keyIds);
  }
}

async function authenticated(request: AuthRequest, raw: unknown, countsAsAttempt: boolean, challenge: string): Promise<Principal> {
  const verified = await verifyApiKey(request.db, raw, countsAsAttempt ? { clientAddress: request.clientAddress } : {});
  if (verified === null) throw apiKeyErrors.invalid_api_key({ headers: { 'www-authenticate': challenge } });
  const { apiKey, user } = verified;
  const principal = principalOf(apiKey, user);
  rememberApiKey(request.headers, principal, apiKey);
  return principal;
}

function principalOf(apiKey: ApiKey, user: User): Principal {
  const principal = { user, scheme: API_KEY_SCHEME, scopes: apiKey.scopes, credentialId: apiKey.id, quota: apiKey.quota };
  const { tenant_id: boundTenant } = apiKey;
  return boundTenant === null || boundTenant === EVERY_TENANT
    ? principal
    : { ...principal, boundTenant, ...(boundTenant === '' ? {} : { tenant: boundTenant }) };
}

/** Past the cache: this is how a process learns of a revocation that it was not notified of. */
async function principalsOf(db: Db, keyIds: readonly string[]): Promise<ReadonlyMap<string, Principal>> {
  const { statements, clock } = keyringOf(db);
  const now = clock.now();
  const keys = await findKeysWithOwners(db, statements, keyIds);
  return new Map(
    keys.filter(({ row }) => keyState(row, now) === 'active').map(({ row, apiKey, owner }) => [row.id, principalOf(apiKey, owner)]),
  );
}
