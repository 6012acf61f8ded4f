import type { AdminContext, AdminDeclaration, AdminResource } from '../../app/admin/declaration.ts';
import type { App } from '../../app/declare/module.ts';
import { modelView } from '../../app/admin/model-view.ts';
import { adminCount } from '../../app/admin/each.ts';
import { adminBuckets } from '../../app/admin/range.ts';
import type { AdminSection } from '../../app/admin/sections.ts';
import type { AdminLink, AdminRange } from '../../app/admin/shapes.ts';
import { findUsers } from '../../auth/people/find-users.ts';
import { usersNamedLike } from '../../auth/people/users-named-like.ts';
import type { RowOf } from '../../db/declare/rows.ts';
import { count } from '../../db/rows/repository.ts';
import type { Where } from '../../db/sql/where/where.ts';
import { isUuid } from '../../db/values/uuid.ts';
import { screen } from '../../screens/screen.ts';
import { chart, section } from '../../screens/screen-words.ts';
import { KEY_STATES, type KeyState } from './key/state.ts';
import { keyOverview } from './manage/overview.ts';
import { apiKeys, type serviceUsers } from './models.ts';
import { apiKeyResource, keysInState, mayChangeKeyOf } from './resource.ts';
import { serviceUserResource } from './service/resource.ts';
import { usageOf } from './rows/usage-store.ts';
import { keyringOf } from './verify/keyring.ts';

type KeyRow = RowOf<typeof apiKeys.columns>;

const LABELS: Readonly<Record<KeyState, string>> = {
  active: 'Active',
  expired: 'Expired',
  revoked: 'Revoked',
  owner_inactive: 'Owner inactive',
};
/** Owners whose name contains the text of a search; more than these and the search says too little. */
const OWNERS_MAX = 100;

const keyScreen = screen(apiKeyResource, {
  name: 'api-keys',
  label: 'API keys',
  singular: 'API key',
  group: 'Access',
  icon: 'key',
  title: 'name',
  columns: [
    'name',
    { name: 'prefix', kind: 'code' },
    { name: 'owner_id', label: 'Owner' },
    { name: 'tenant_id', label: 'Tenant', secondary: true },
    { name: 'scopes', secondary: true },
    { name: 'state', secondary: false },
    { name: 'rate_limit', secondary: true, sortNote: 'Cannot be sorted: limits have different units of time.' },
    { name: 'quota', secondary: true, sortNote: 'Cannot be sorted: quotas have different periods.' },
    { name: 'last_used_at', label: 'Last used', secondary: false },
    { name: 'expires_at', label: 'Expires', secondary: true },
    { name: 'created_at', label: 'Created', secondary: true },
  ],
  facts: ['id', { name: 'revoked_at', label: 'Revoked', ifSet: true }, { name: 'revoked_reason', label: 'Reason', ifSet: true }],
  state: 'state',
  tones: {
    state: {
      active: { value: 'active', tone: 'good' },
      expired: { value: 'expired', tone: 'neutral', hint: 'Its expiry has passed. A later one makes it work again.' },
      revoked: { value: 'revoked', tone: 'bad', hint: 'A revoked key never works again.' },
      owner_inactive: { value: 'owner inactive', tone: 'warning', hint: 'Works again when its owner is activated.' },
    },
  },
  search: ['name', 'prefix'],
  searches: 'name, prefix or owner',
  alsoFinds: async (text, { db }) => ({ owner_id: await usersNamedLike(db, keyringOf(db).users, text, OWNERS_MAX) }),
  filters: [
    {
      name: 'state',
      label: 'State',
      kind: 'select',
      choices: KEY_STATES.map((value) => ({ value, label: LABELS[value] })),
      where: (state, { clock }) => keysInState(state, clock.now()),
    },
    {
      name: 'owner',
      column: 'owner_id',
      label: 'Owner',
      kind: 'reference',
      of: 'user',
      isIndexed: true,
      where: async (owner, { db }) => ({ owner_id: (await keyringOf(db).users.findByLogin(db, owner))?.id ?? owner }) as Where,
    },
    { column: 'tenant_id', name: 'tenant', label: 'Tenant', kind: 'text' },
    { column: 'last_used_at', name: 'used', label: 'Last used', ends: ['used_since', 'used_before'] },
    { column: 'expires_at', name: 'expires', label: 'Expires', ends: ['expires_since', 'expires_before'] },
    { column: 'revoked_at', name: 'revoked', label: 'Revoked', ends: ['revoked_since', 'revoked_before'] },
  ],
  related: [{ to: 'tenant', filter: 'tenant', column: 'tenant_id' }],
  notice: async ({ owner_id }, { db, principal }) =>
    (await mayChangeKeyOf(db, principal.user, owner_id))
      ? null
      : { tone: 'info', text: 'Only a superuser can edit this key: its owner is one. It can be revoked by every staff member.' },
  creation: {
    refused:
      'A key is shown once, on creation, and only to its owner. Owners create their keys themselves; operators run `kit apikey create` and hand over the key.',
  },
  removable: false,
  editable: ({ revoked_at }) => revoked_at === null,
  fields: {
    name: { required: true },
    scopes: {
      help: 'What the key may do: `orders:read`, `orders:*`, or `*` for everything. Without scopes, the key can call only operations that need none.',
      maxLength: 129,
    },
    rate_limit: { placeholder: '1000/hour' },
    quota: {
      placeholder: '10000/month',
      help: 'Requests in a calendar hour, day, month or year (UTC). Needs requests(), which counts them.',
    },
    expires_at: { label: 'Expires', help: 'Empty: never.' },
  },
  suggestions: async ({ db }) => {
    const scopes = keyringOf(db).routeScopes();
    return { scopes: [...scopes, ...new Set(scopes.map((scope) => `${scope.split(':', 1)[0]}:*`)), '*'] };
  },
  actions: [
    {
      name: 'revoke',
      label: { one: 'Revoke', many: 'Revoke selected keys' },
      tone: 'bad',
      confirm: { one: 'The key stops working immediately and permanently.', many: 'The keys stop working immediately and permanently.' },
      confirmLabel: 'Revoke',
      done: 'revoked',
      when: ({ revoked_at }) => revoked_at === null,
      async preview({ db }, ids) {
        const revoked = await count(db, apiKeys, { id: { in: ids.filter(isUuid) }, revoked_at: { isnull: false } });
        if (revoked === 0) return null;
        const which =
          ids.length === 1 ? 'The key is' : `${adminCount(revoked, ['key', 'keys'])} of ${ids.length} ${revoked === 1 ? 'is' : 'are'}`;
        return { message: `${which} already revoked: the date and the reason stay as they are.`, tone: 'warning' };
      },
      fields: [{ name: 'reason', label: 'Reason', kind: 'text', maxLength: 200, help: 'Stored with the key and in the audit log.' }],
    },
  ],
  sections: [
    section<KeyRow>(({ context, row }) => oldSecret(row, context.clock.now())),
    chart(({ context, id, range }) => usageChart(context, id, range)),
  ],
});

const serviceUserScreen = screen(serviceUserResource, {
  label: 'Service users',
  singular: 'service user',
  group: 'Access',
  icon: 'user',
  title: 'name',
  description: 'Programs of a tenant, whose API keys stay when people leave.',
  columns: [
    'name',
    { name: 'user_id', label: 'User', kind: 'link' },
    { name: 'tenant_id', label: 'Tenant', kind: 'link' },
    { name: 'roles', kind: 'chips' },
    { name: 'created_by', label: 'Created by', secondary: true },
    { name: 'created_at', label: 'Created', secondary: true },
  ],
  facts: ['id'],
  load: async (rows, { db, titlesOf, linkTo }) => {
    const users = await findUsers(
      db,
      keyringOf(db).users.table,
      rows.flatMap(({ user_id, created_by }) => (created_by === null ? [user_id] : [user_id, created_by])),
    );
    const titles = await titlesOf(
      'tenant',
      rows.map(({ tenant_id }) => tenant_id),
    );
    return rows.map(({ user_id: user, tenant_id: tenant, created_by: creator }) => ({
      user_link: linkTo('user', user, users.get(user)?.username ?? user),
      tenant_link: linkTo('tenant', tenant, titles.get(tenant) ?? tenant),
      creator: creator === null ? null : (users.get(creator)?.username ?? creator),
    }));
  },
  cells: {
    user_id: (row) => (row as LinkedServiceUser).user_link ?? row.user_id,
    tenant_id: (row) => (row as LinkedServiceUser).tenant_link ?? row.tenant_id,
    created_by: (row) => (row as LinkedServiceUser).creator ?? null,
  },
  filters: [
    { column: 'tenant_id', name: 'tenant', label: 'Tenant', kind: 'text' },
    { column: 'user_id', name: 'user', label: 'User', kind: 'text' },
  ],
  search: ['name'],
  related: [
    { to: 'tenant', filter: 'tenant', column: 'tenant_id' },
    { to: 'user', filter: 'user', column: 'user_id' },
  ],
  creation: { refused: 'Those who manage a tenant create its service users, and see their keys, with ServiceUserController.' },
  removal: 'Its API keys stop working with the next request. Nothing that it made is deleted.',
  viewAs: ({ user_id: user, tenant_id: tenant }) => ({ user, tenant }),
  bulkEdit: false,
});

interface LinkedServiceUser extends RowOf<typeof serviceUsers.columns> {
  readonly user_link?: AdminLink | null;
  readonly tenant_link?: AdminLink | null;
  readonly creator?: string | null;
}

/** In apps whose tenants can have some. */
const serviceUsersOfApp: AdminResource = {
  ...serviceUserScreen,
  installedIn: (app) =>
    (app as App).registry.tenants.directory?.serviceMembers === undefined ? null : (serviceUserScreen.installedIn?.(app) ?? null),
};

/** The admin site's list of keys, and what it shows of them at a glance. */
export const apiKeysAdmin: AdminDeclaration = { resources: [keyScreen, serviceUsersOfApp], overview: keyOverview };

const HOUR_MS = 3_600_000;

/** What the key did, counted by the hour. */
async function usageChart({ db, clock }: AdminContext, id: string, range: AdminRange): Promise<AdminSection> {
  const { starts, since, until, ms } = adminBuckets(range, clock.now(), HOUR_MS);
  const values = starts.map(() => 0);
  for (const { hour, requests } of await usageOf(db, id, since, until)) {
    const bucket = Math.floor((hour.getTime() - since.getTime()) / ms);
    if (bucket in values) values[bucket] = (values[bucket] ?? 0) + requests;
  }
  return {
    kind: 'chart',
    chart: {
      title: 'Requests',
      kind: 'bars',
      unit: 'count',
      buckets: starts.map((start) => start.toISOString()),
      series: [{ name: 'Requests', tone: 'info', values }],
      empty: 'No request with this key in this time.',
    },
  };
}

const oldSecretView = modelView(apiKeys, [
  { name: 'previous', label: 'Old secret', kind: 'text' },
  { name: 'previous_expires_at', label: 'Works until' },
  { name: 'previous_last_used_at', label: 'Last used' },
]);

/** Of a key that was rotated with a grace period. */
function oldSecret(key: KeyRow, now: Date): AdminSection[] {
  if (key.previous_expires_at === null) return [];
  const previous = key.previous_expires_at > now ? 'still works beside the new one' : 'no longer works';
  const { columns } = oldSecretView;
  return [{ kind: 'facts', title: 'Secret from before the last rotation', columns, values: oldSecretView.values(key, { previous }) }];
}
