import type { AdminContext, AdminDeclaration } from '../../app/admin/declaration.ts';
import { modelView } from '../../app/admin/model-view.ts';
import { adminBuckets } from '../../app/admin/range.ts';
import type { AdminSection } from '../../app/admin/sections.ts';
import type { AdminRange } from '../../app/admin/shapes.ts';
import { usersNamedLike } from '../../auth/people/users-named-like.ts';
import type { RowOf } from '../../db/declare/rows.ts';
import type { Where } from '../../db/sql/where/where.ts';
import { screen } from '../../screens/screen.ts';
import { chart, section } from '../../screens/screen-words.ts';
import { KEY_STATES, type KeyState } from './key/state.ts';
import { keyOverview } from './manage/overview.ts';
import { apiKeys } from './models.ts';
import { apiKeyResource, keysInState, mayChangeKeyOf } from './resource.ts';
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
      'A key is shown once, when it is made, and only its owner may see it. Owners create keys themselves; operators use `kit apikey create` and hand the key over.',
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
      fields: [{ name: 'reason', label: 'Reason', kind: 'text', maxLength: 200, help: 'Stored with the key and in the audit log.' }],
    },
  ],
  sections: [
    section<KeyRow>(({ context, row }) => oldSecret(row, context.clock.now())),
    chart(({ context, id, range }) => usageChart(context, id, range)),
  ],
});

/** The admin site's list of keys, and what it shows of them at a glance. */
export const apiKeysAdmin: AdminDeclaration = { resources: [keyScreen], overview: keyOverview };

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
