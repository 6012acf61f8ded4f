import type { AuthenticatorHost } from '../../auth/request/authenticator.ts';
import { getOrCreateSecret } from '../../db/rows/secrets.ts';
import { firstUse } from '../../throttle/first-use.ts';
import type { App } from '../declare/module.ts';

/** What authenticators may use of an app. */
export function authenticatorHost(app: App): AuthenticatorHost {
  const { clock, log, registry, settings } = app;
  return {
    clock,
    log,
    metrics: registry.metrics,
    identities: registry.identities,
    servers: settings.apiServers,
    firstUse: (key, forMs) => firstUse(app.throttleStorage, key, forMs, clock.now()),
    secret: (name) => getOrCreateSecret(app.db, name),
  };
}
