import type { App } from '../../../app/declare/module.ts';
import { coreErrors } from '../../../errors/core-errors.ts';

type Headers = Readonly<Record<string, string | string[] | undefined>>;

const LOOPBACK: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

/** The host names that clients may use: those of the option, else of API_SERVERS, and always this machine's own. */
export function allowedHosts(given: readonly string[] | undefined, { settings }: Pick<App, 'settings'>): ReadonlySet<string> {
  const named = given ?? settings.apiServers.flatMap((server) => URL.parse(server)?.hostname ?? []);
  return new Set([...named, ...LOOPBACK]);
}

/**
 * Rejects what a browser was tricked into sending: a name that an attacker points at this machine (DNS rebinding), or a page of another site. Throws
 * 403 before anything else of the request is looked at.
 */
export function refuseForeignHost({ host, origin }: Headers, allowed: ReadonlySet<string>): void {
  if (!isAllowed(`http://${String(host ?? '')}`, allowed))
    throw coreErrors.permission_denied({
      detail: 'The Host header names another host. The server accepts its own names only: see mcp({ hosts }).',
    });
  if (origin !== undefined && !isAllowed(String(origin), allowed))
    throw coreErrors.permission_denied({ detail: 'The Origin header names another site.' });
}

function isAllowed(url: string, allowed: ReadonlySet<string>): boolean {
  const parsed = URL.parse(url);
  return parsed !== null && parsed.username === '' && parsed.pathname === '/' && allowed.has(parsed.hostname);
}
