import type { AdminSite } from '../../admin/state/admin-site.ts';
import { namedFor } from '../../admin/state/site-kind.ts';
import { isSessionToken, newSessionToken, sessionDigest } from '../../contrib/accounts/sessions/session-token.ts';
import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import type { Db } from '../../db/engine/db.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { Controller } from '../../http/compile/controller.ts';
import type { HandlerContext } from '../../http/declare/handler-context.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import { route } from '../../http/declare/route.ts';
import { allowAny } from '../../permissions/built-ins.ts';
import { clientThrottle } from '../../throttle/throttles.ts';
import { portalErrors } from '../errors.ts';
import { recordLink } from './portal-link.ts';
import { findUnused, openOnce, removeExpired, removeSession } from './rows.ts';
import { foreignFault, portalCookie, SESSION_MS, tokenOf } from './session.ts';
import { portalState } from './state.ts';

const LinkBody = jsonSchema<{ token: string; framed?: boolean }>({
  type: 'object',
  properties: { token: { type: 'string', minLength: 1, maxLength: 100, 'x-sensitive': true }, framed: { type: 'boolean' } },
  required: ['token'],
  additionalProperties: false,
});
const Opened = jsonSchema<{ token: string | null }>({
  type: 'object',
  properties: {
    token: {
      type: ['string', 'null'],
      description: 'The token of the session, for a page in a frame, which keeps it in memory. Null: it is in the cookie.',
      'x-sensitive': true,
    },
  },
  required: ['token'],
});

/** What one client can try: a token has 256 random bits. */
const openThrottle = clientThrottle('30/min', { name: 'portal_links' });

/** Opens links. A POST, after a click: programs that look at mails follow links by GET, and would use them up. */
export function linkController(site: AdminSite, isSecure: boolean): Controller {
  const facts = { hidden: true, metadata: { portal: true }, permission: allowAny, auth: [], throttles: [openThrottle] } as const;

  class KitSiteLinkController extends Controller {
    open = route.post('/', { ...facts, body: LinkBody, response: Opened, raises: [portalErrors.invalid_portal_link] }, async (context) => {
      // A page of another site would put its visitor into an account of its own.
      const fault = foreignFault(context.request.headers, isSecure);
      if (fault !== null) throw coreErrors.csrf_failed({ message: `CSRF: ${fault}` });
      const { token, framed = false } = context.body;
      const session = await openLink(context.db, token, context);
      if (framed) return { token: session };
      const previous = tokenOf(context.request.headers, isSecure);
      // A session never goes on in one that it did not start.
      if (previous?.isAmbient === true) await removeSession(context.db, sessionDigest(previous.token));
      context.reply.header('set-cookie', portalCookie(session, SESSION_MS / 1000, isSecure));
      return { token: null };
    });
  }
  return new (namedFor(site.kind, KitSiteLinkController))();
}

/** Returns the token of the session. One answer for all that does not work: it tells nobody what there was. */
async function openLink(db: Db, token: string, { requestId, client }: Pick<HandlerContext, 'requestId' | 'client'>): Promise<string> {
  const { clock, registry } = portalState.of(db);
  const now = clock.now();
  const link = isSessionToken(token) ? await findUnused(db, sessionDigest(token), now) : undefined;
  if (link === undefined) throw portalErrors.invalid_portal_link();
  const [standing] = await registry.standings.of(db, [{ userId: link.user_id, tenant: link.tenant_id }]);
  // Where memberships are in access tokens, nobody can be asked; requests of the session are decided as others are.
  if (standing?.ok !== true && standing?.why !== 'not_known') throw portalErrors.invalid_portal_link();
  const session = newSessionToken();
  await db.transaction(async (tx) => {
    const opening = { now, session: sessionDigest(session), until: new Date(now.getTime() + SESSION_MS) };
    if (!(await openOnce(tx, link.id, opening))) throw portalErrors.invalid_portal_link();
    const actor = standing.ok ? standing.user : null;
    await recordLink(tx, 'opened', link, { by: actor, requestId }, { client: client.address });
    await removeExpired(tx, now);
  }, CONFLICT_RETRIES);
  return session;
}
