import type { AdminContext } from '../../app/admin/declaration.ts';
import type { LoginProvider } from '../../app/declare/login-provider.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { Controller } from '../../http/compile/controller.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import { route } from '../../http/declare/route.ts';
import { exchangeOf } from '../../http/serve/serve-route.ts';
import { hasRecentLogin } from '../../permissions/built-ins.ts';
import { all } from '../../permissions/permission.ts';
import { VIEW_REASON_LENGTH_MAX } from '../models.ts';
import { beginView, currentView, endView, type View, viewCookie } from './views.ts';
import type { AdminSite } from '../state/admin-site.ts';
import { siteFacts } from '../state/site-kind.ts';
import type { AdminView } from '../wire/wire.ts';

const ViewAnswer = jsonSchema<AdminView>({});
const text = (maxLength: number) => ({ type: 'string', minLength: 1, maxLength });
const ViewBody = jsonSchema<{ readonly user: string; readonly tenant?: string | null; readonly reason: string }>({
  type: 'object',
  properties: { user: text(255), tenant: { type: ['string', 'null'], maxLength: 255 }, reason: text(VIEW_REASON_LENGTH_MAX) },
  required: ['user', 'reason'],
  additionalProperties: false,
});

/** Looking at the application as a user: for the banner, and to begin and end it. */
export function viewController(site: AdminSite, login: LoginProvider): Controller {
  const facts = siteFacts(site.kind, login.authenticators);

  class KitAdminViewController extends Controller {
    view = route.get('/', { ...facts, response: ViewAnswer }, async (context) =>
      answer(site, site.context(context, context.principal), await currentView(site, exchangeOf(context.request), context.principal)),
    );

    begin = route.post(
      '/',
      { ...facts, permission: all(facts.permission, hasRecentLogin), body: ViewBody, response: ViewAnswer, status: 201 },
      async (context) => {
        const { db, body, principal, requestId } = context;
        const isProved = (await login.hasSecondFactor?.(context)) ?? principal.secondFactor === 'proved';
        if (!isProved) throw coreErrors.second_factor_required();
        const { user, tenant = null, reason } = body;
        const view = await beginView(site, db, { user, tenant, reason }, { principal, requestId });
        void context.reply.header('set-cookie', viewCookie(view));
        return answer(site, site.context(context, principal), view);
      },
    );

    end = route.delete('/', { ...facts, status: 204 }, async (context) => {
      const { db, principal, requestId } = context;
      const view = await currentView(site, exchangeOf(context.request), principal);
      if (view !== null) await endView(site, db, view, { principal, requestId });
      // Also the cookie of one that is over.
      void context.reply.header('set-cookie', viewCookie(null));
    });
  }
  return new KitAdminViewController();
}

async function answer(site: AdminSite, asked: AdminContext, view: View | null): Promise<AdminView> {
  if (view === null) return { view: null };
  const user = await site.app.users?.findById(asked.db, view.user_id);
  const titles = view.tenant_id === '' ? null : await asked.titlesOf('tenant', [view.tenant_id]);
  return {
    view: {
      user: { id: view.user_id, username: user?.username ?? view.user_id },
      tenant: view.tenant_id === '' ? null : view.tenant_id,
      tenant_name: titles?.get(view.tenant_id) ?? null,
      reason: view.reason,
      expires_at: view.expires_at.toISOString(),
    },
  };
}
