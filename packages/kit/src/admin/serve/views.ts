import type { AdminContext } from '../../app/admin/declaration.ts';
import type { AdminRecord } from '../../app/admin/sections.ts';
import type { AdminField } from '../../app/admin/shapes.ts';
import type { Principal, User } from '../../auth/people/principal.ts';
import type { AuthRequest } from '../../auth/request/authenticator.ts';
import type { Viewing } from '../../auth/request/viewing.ts';
import type { Row } from '../../db/declare/rows.ts';
import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import type { Db } from '../../db/engine/db.ts';
import { findBy, insert, remove } from '../../db/rows/repository.ts';
import { isUuid } from '../../db/values/uuid.ts';
import { uuidv7 } from '../../db/values/uuidv7.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { cookieValues } from '../../http/declare/read-cookie.ts';
import { adminErrors } from '../../screens/errors.ts';
import { VIEW_REASON_LENGTH_MAX, views } from '../models.ts';
import type { AdminSite } from '../state/admin-site.ts';
import { roleOf } from '../staff/staff-roles.ts';

export type View = Row<typeof views>;

/** No secret: a view is good only together with the session of the member of staff who began it. */
const COOKIE = 'kit_view_as';
const VIEW_MS = 30 * 60_000;

/** Who asks, and in which request. */
interface Staff {
  readonly principal: Principal;
  readonly requestId: string | null;
}

/** What decides about the requests of a view. */
export function viewingOf(site: AdminSite): Viewing {
  return {
    principalOf(request, staff) {
      const ids = viewIdsIn(request);
      return ids === null ? null : viewedUser(site, request.db, ids, staff);
    },
  };
}

function viewIdsIn({ headers }: Pick<AuthRequest, 'headers'>): readonly string[] | null {
  return cookieValues(headers['cookie']).get(COOKIE) ?? null;
}

/** Everything that a view depends on, asked with each request: the session, the rights of the member of staff, the time, the user. */
async function viewedUser(site: AdminSite, db: Db, ids: readonly string[], staff: Principal): Promise<Principal> {
  const view = await openView(site, db, ids, staff);
  const user = view === null ? null : await viewableUser(site, db, view.user_id);
  if (view === null || user === null) throw coreErrors.view_ended();
  return {
    user: { ...user, is_staff: false, is_superuser: false },
    scheme: 'view_as',
    scopes: null,
    credentialId: staff.credentialId,
    boundTenant: view.tenant_id,
    ...(view.tenant_id === '' ? {} : { tenant: view.tenant_id }),
    recentLogin: false,
    impersonatedBy: staff.user.id,
    isViewing: true,
  };
}

async function openView(site: AdminSite, db: Db, [id, other]: readonly string[], staff: Principal): Promise<View | null> {
  // Sent twice, it is unknown which one is ours.
  if (id === undefined || other !== undefined || !isUuid(id) || !(await mayView(site, staff))) return null;
  const view = await findBy(db, views, { id });
  const isOwn = view !== undefined && view.staff_id === staff.user.id && view.credential_id === credentialOf(staff);
  return isOwn && view.expires_at > site.app.clock.now() ? view : null;
}

async function mayView({ settings }: AdminSite, { user }: Principal): Promise<boolean> {
  return user.is_staff && (await roleOf(settings, user)) === 'administrator';
}

/** An active user who is no member of staff; null otherwise. */
async function viewableUser({ app }: AdminSite, db: Db, id: string): Promise<User | null> {
  const user = (await app.users?.findById(db, id)) ?? null;
  return user === null || !user.is_active || user.is_staff || user.is_superuser ? null : user;
}

const credentialOf = ({ credentialId = '' }: Principal): string => credentialId;

/** The view of a request of the admin site; null: none is open. */
export async function currentView(site: AdminSite, request: AuthRequest, staff: Principal): Promise<View | null> {
  const ids = viewIdsIn(request);
  return ids === null ? null : openView(site, request.db, ids, staff);
}

/** What is asked before a member of staff looks as the user of a record; null where that is not possible. */
export async function offeredView(
  site: AdminSite,
  { db, principal, titlesOf }: AdminContext,
  view: AdminRecord['view'],
): Promise<NonNullable<AdminRecord['view']> | null> {
  if (view === undefined || !site.settings.viewAs || !(await mayView(site, principal))) return null;
  const user = await viewableUser(site, db, view.user);
  if (user === null) return null;
  const { tenants } = site.app.registry;
  const isChosen = view.tenant === null && tenants.exist;
  return { user: view.user, tenant: view.tenant, fields: [...(isChosen ? [await tenantField()] : []), REASON] };

  async function tenantField(): Promise<AdminField> {
    const facts = { name: 'tenant', label: 'Tenant', nullable: true } as const;
    if (tenants.directory === null) return { ...facts, kind: 'text', help: 'Empty: what the user sees outside of tenants.' };
    const ids = await tenants.directory.ofUser(db, view?.user ?? '', TENANTS_OFFERED);
    const titles = await titlesOf('tenant', ids);
    const choices = ids.map((value) => ({ value, label: titles.get(value) ?? value }));
    return { ...facts, kind: 'select', choices, help: 'Nothing chosen: what the user sees outside of tenants.' };
  }
}

const REASON: AdminField = {
  name: 'reason',
  label: 'Reason',
  kind: 'text',
  required: true,
  maxLength: VIEW_REASON_LENGTH_MAX,
  help: 'Goes into the audit log, which the owners of the tenant can read.',
};
const TENANTS_OFFERED = 100;

/** Begins to look as a user, in one tenant or in none. It takes the place of another view of the same person. */
export async function beginView(
  site: AdminSite,
  db: Db,
  { user: userId, tenant, reason }: { readonly user: string; readonly tenant: string | null; readonly reason: string },
  { principal, requestId }: Staff,
): Promise<View> {
  const { app, settings } = site;
  if (!(await mayView(site, principal))) {
    const role = await roleOf(settings, principal.user);
    throw adminErrors.role_required({ detail: `This needs the role administrator; yours is ${role}.` });
  }
  return db.transaction(async (tx) => {
    const user = await viewableUser(site, tx, userId);
    if (user === null) throw adminErrors.view_refused({ detail: 'There is no such active user, or the user is a member of staff.' });
    const tenantId = await tenantOf(site, tx, user, tenant);
    const now = app.clock.now();
    await tx.query('delete from admin_views where staff_id = $1 or expires_at <= $2', [principal.user.id, now]);
    const view = await insert(tx, views, {
      id: uuidv7(app.clock),
      staff_id: principal.user.id,
      credential_id: credentialOf(principal),
      user_id: user.id,
      tenant_id: tenantId,
      reason,
      started_at: now,
      expires_at: new Date(now.getTime() + VIEW_MS),
    });
    const metadata = { username: user.username, reason, until: view.expires_at.toISOString() };
    await app.registry.audit?.record(tx, [{ ...entryOf('view_began', view, { principal, requestId }), metadata }]);
    return view;
  }, CONFLICT_RETRIES);
}

/** The id of the tenant that the user is a member of now. */
async function tenantOf({ app }: AdminSite, tx: Db, user: User, named: string | null): Promise<string> {
  const { tenants, standings } = app.registry;
  if (named === null || named === '') return '';
  const refused = () => adminErrors.view_refused({ detail: 'The user is not a member of this tenant.' });
  if (!tenants.exist) throw refused();
  if (tenants.directory !== null) {
    const found = await tenants.directory.named({ db: tx, principal: { user, scheme: 'view_as', scopes: null }, names: [named] });
    const { tenant } = found.get(named) ?? {};
    if (tenant === undefined) throw refused();
    return tenant;
  }
  const [standing] = await standings.of(tx, [{ userId: user.id, tenant: named }]);
  if (standing?.ok !== true) throw refused();
  return named;
}

export async function endView(site: AdminSite, db: Db, view: View, staff: Staff): Promise<void> {
  await db.transaction(async (tx) => {
    if (await remove(tx, views, view.id)) await site.app.registry.audit?.record(tx, [entryOf('view_ended', view, staff)]);
  }, CONFLICT_RETRIES);
}

/** The owners of the tenant see the entry. */
function entryOf(verb: string, { user_id, tenant_id: tenant }: View, { principal, requestId }: Staff) {
  return { actor: principal, action: `user.${verb}`, target_type: 'user', target_id: user_id, tenant, request_id: requestId };
}

/** The cookie that makes the requests of the browser those of the view. */
export function viewCookie(view: Pick<View, 'id'> | null): string {
  const maxAge = view === null ? 0 : VIEW_MS / 1000;
  return `${COOKIE}=${view?.id ?? ''}; Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Strict`;
}
