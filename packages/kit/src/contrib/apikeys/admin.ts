import { iso } from '../../app/admin/iso.ts';
import { modelField, modelView } from '../../app/admin/model-list.ts';
import { userLink } from '../../app/admin/user-link.ts';
import { adminBuckets, rangeFilters } from '../../app/admin/range.ts';
import { adminDone, adminEach } from '../../app/admin/each.ts';
import { isUuid } from '../../db/values/uuid.ts';
import type { AdminContext, AdminDeclaration, AdminResource } from '../../app/admin/declaration.ts';
import type { AdminField, AdminOverview, AdminRange, AdminRow, AdminState, AdminSection } from '../../app/admin/shapes.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import {
  COUNTED_KEYS_MAX,
  countKeysForAdmin,
  findKeyForAdmin,
  keyList,
  lastUsesByBucket,
  listKeysForAdmin,
  type ListedKey,
} from './manage/admin-store.ts';
import { apiKeyErrors } from './errors.ts';
import { fieldFaults } from './rows/field-rules.ts';
import { defaultGrantable, grantFaults } from './key/grant.ts';
import { keyringOf } from './verify/keyring.ts';
import { apiKeys } from './models.ts';
import { revokeApiKey } from './manage/revoke.ts';
import { KEY_STATES, keyState, type KeyState } from './key/state.ts';
import { updateApiKey } from './manage/update.ts';
import { usageOf } from './rows/usage-store.ts';
import { groupDigits } from '../../app/admin/group-digits.ts';

const DAY_MS = 86_400_000;
const SOON_MS = 7 * DAY_MS;

const LABELS: Readonly<Record<KeyState, string>> = {
  active: 'Active',
  expired: 'Expired',
  revoked: 'Revoked',
  owner_inactive: 'Owner inactive',
};

const STATES: Readonly<Record<KeyState, AdminState>> = {
  active: { value: 'active', tone: 'good' },
  expired: { value: 'expired', tone: 'neutral', hint: 'Its expiry has passed. A later one makes it work again.' },
  revoked: { value: 'revoked', tone: 'bad', hint: 'A revoked key never works again.' },
  owner_inactive: { value: 'owner inactive', tone: 'warning', hint: 'Works again when its owner is activated.' },
};

const resource: AdminResource = {
  name: 'api-keys',
  label: 'API keys',
  singular: 'API key',
  group: 'Access',
  icon: 'key',
  auditedAs: 'api_key',
  needsPresence: ['create'],
  columns: keyList.columns,
  filters: [
    { name: 'state', label: 'State', kind: 'select', choices: KEY_STATES.map((value) => ({ value, label: LABELS[value] })) },
    { name: 'owner', label: 'Owner', kind: 'reference', of: 'user' },
    { name: 'used', label: 'Last used', kind: 'time', ends: ['used_since', 'used_before'] },
    { name: 'expires_before', label: 'Expires before', kind: 'time' },
    { name: 'revoked', label: 'Revoked', kind: 'time', ends: ['revoked_since', 'revoked_before'] },
  ],
  related: [{ to: 'user', filter: 'owner' }],
  searches: 'name, prefix or owner',
  creation: {
    refused:
      'A key is shown once, when it is made, and only its owner may see it. Owners create keys themselves; operators use `kit apikey create` and hand the key over.',
  },
  editable: true,
  removable: false,
  actions: [
    {
      name: 'revoke',
      dryRun: 'revoked',
      label: { one: 'Revoke', many: 'Revoke selected keys' },
      tone: 'bad',
      on: 'selection',
      confirm: { one: 'The key stops working immediately and permanently.', many: 'The keys stop working immediately and permanently.' },
      confirmLabel: 'Revoke',
      fields: [{ name: 'reason', label: 'Reason', kind: 'text', maxLength: 200, help: 'Stored with the key and in the audit log.' }],
      async run(context, ids, { reason }) {
        const by = { by: context.principal, requestId: context.requestId, reason: (reason as string | undefined) ?? null };
        const result = await adminEach(context, ids, async (id) => {
          if (!isUuid(id)) throw apiKeyErrors.api_key_not_found();
          await revokeApiKey(context.db, id, by);
        });
        return adminDone(result, ['key', 'keys'], 'revoked');
      },
    },
  ],
  async list(context, query) {
    const now = context.clock.now();
    const { rows, ...page } = await listKeysForAdmin(context.db, query, now);
    return { ...page, items: rows.map((key) => rowOf(context, key, now)) };
  },
  titles: ({ db }, ids) => keyList.titles(db, ids, 'name'),
  async read(context, id, range = '30d') {
    const key = isUuid(id) ? await findKeyForAdmin(context.db, id) : null;
    if (key === null) return null;
    const now = context.clock.now();
    const row = rowOf(context, key, now);
    const revoked = key.revoked_at !== null;
    const beyond = await isBeyond(context, key);
    return {
      ...row,
      state: row.values['state'] as AdminState,
      sections: [
        keyList.facts('Key', key, { ...row.values, ...(beyond ? { editing: 'only by a superuser: its owner is one' } : {}) }, [
          'id',
          ...(revoked ? REVOCATION : beyond ? [{ name: 'editing', kind: 'text' } as const] : []),
        ]),
        ...oldSecret(key, now),
        await usageChart(context, key.id, range),
      ],
      ...(revoked || beyond ? {} : { form: { fields: formFields(context), values: formValues(key) } }),
      range,
      actions: revoked ? [] : ['revoke'],
      removable: false,
    };
  },
  async validate(context, fields) {
    checkedForm(context, fields);
  },
  async update(context, id, fields) {
    const { db, principal, requestId } = context;
    const key = await updateApiKey(db, id, { ...checkedForm(context, fields), by: principal, requestId });
    return { message: `${key.name} saved.`, id };
  },
};

/** Every fault at once: of the fields themselves, and of scopes that the member of staff may not grant. */
function checkedForm({ db, principal }: AdminContext, form: Readonly<Record<string, unknown>>) {
  const { name, scopes, rate_limit: rateLimit, expires_at } = form as Partial<ReturnType<typeof formValues>>;
  const fields = { name, scopes, rateLimit, expiresAt: typeof expires_at === 'string' ? new Date(expires_at) : expires_at };
  const { clock, routeScopes } = keyringOf(db);
  const errors = [...fieldFaults(fields, clock.now()), ...grantFaults(scopes ?? [], defaultGrantable(routeScopes(), principal.user))];
  if (errors.length > 0) throw coreErrors.validation_error({ errors });
  return fields;
}

/** The admin site's list of keys, and what it shows of them at a glance. */
export const apiKeysAdmin: AdminDeclaration = { resources: [resource], overview };

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

const REVOCATION = [
  { name: 'revoked_at', label: 'Revoked' },
  { name: 'revoked_reason', label: 'Reason' },
];

const oldSecretView = modelView(apiKeys, [
  { name: 'previous', label: 'Old secret', kind: 'text' },
  { name: 'previous_expires_at', label: 'Works until' },
  { name: 'previous_last_used_at', label: 'Last used' },
]);

/** The holder of a superuser's narrow key must not be able to widen it to the superuser's whole power. Revoking takes away only. */
async function isBeyond({ db, principal }: AdminContext, { owner_id }: ListedKey): Promise<boolean> {
  if (principal.user.is_superuser) return false;
  return (await keyringOf(db).users.findById(db, owner_id))?.is_superuser === true;
}

/** Of a key that was rotated with a grace period. */
function oldSecret(key: ListedKey, now: Date): AdminSection[] {
  if (key.previous_expires_at === null) return [];
  const previous = key.previous_expires_at > now ? 'still works beside the new one' : 'no longer works';
  const { columns } = oldSecretView;
  return [{ kind: 'facts', title: 'Secret from before the last rotation', columns, values: oldSecretView.values(key, { previous }) }];
}

function formFields({ db }: AdminContext): readonly AdminField[] {
  const scopes = keyringOf(db).routeScopes();
  const wildcards = [...new Set(scopes.map((scope) => `${scope.split(':', 1)[0]}:*`)), '*'];
  return [
    modelField(apiKeys, 'name'),
    {
      name: 'scopes',
      label: 'Scopes',
      kind: 'strings',
      help: 'What the key may do: `orders:read`, `orders:*`, or `*` for everything. Without scopes, the key can call only operations that need none.',
      suggestions: [...scopes, ...wildcards],
      maxLength: 129,
    },
    modelField(apiKeys, 'rate_limit', { placeholder: '1000/hour' }),
    modelField(apiKeys, 'expires_at', { label: 'Expires', help: 'Empty: never.' }),
  ];
}

function formValues({ name, scopes, rate_limit, expires_at }: ListedKey) {
  return { name, scopes, rate_limit, expires_at: iso(expires_at) };
}

function rowOf(context: AdminContext, key: ListedKey, now: Date): AdminRow {
  const owner = userLink(context, key.owner_id, key.owner_username);
  return { id: key.id, title: key.name, values: keyList.values(key, { owner, state: STATES[keyState(key, now)] }) };
}

async function overview({ db, clock }: AdminContext, range: AdminRange): Promise<AdminOverview> {
  const now = clock.now();
  const buckets = adminBuckets(range, now);
  const soon = new Date(now.getTime() + SOON_MS);
  const counts = await countKeysForAdmin(db, { since: buckets.since, until: buckets.until, now, soon });
  const bounded = counts.all < COUNTED_KEYS_MAX ? '' : ` Of the newest ${groupDigits(COUNTED_KEYS_MAX)} keys.`;
  const keys = (filters: Readonly<Record<string, string>>) => ({ resource: 'api-keys', filters });
  return {
    title: 'API keys',
    tiles: [
      {
        label: 'Active keys',
        value: counts.active,
        unit: 'count',
        tone: 'neutral',
        ...(bounded === '' ? {} : { hint: bounded.trim() }),
        link: keys({ state: 'active' }),
      },
      {
        label: 'Used',
        value: counts.used,
        unit: 'count',
        tone: 'info',
        hint: `Keys whose last use falls into the range.${bounded}`,
        link: keys(rangeFilters(buckets, now, ['used_since', 'used_before'])),
      },
      {
        label: 'Expire within 7 days',
        value: counts.expiring,
        unit: 'count',
        tone: counts.expiring > 0 ? 'warning' : 'neutral',
        hint: `Active keys that stop working soon unless their expiry is moved.${bounded}`,
        link: keys({ state: 'active', expires_before: soon.toISOString() }),
      },
      {
        label: 'Revoked',
        value: counts.revoked,
        unit: 'count',
        tone: 'neutral',
        hint: `In the range.${bounded}`,
        link: keys({ state: 'revoked', ...rangeFilters(buckets, now, ['revoked_since', 'revoked_before']) }),
      },
    ],
    charts: [
      {
        title: 'Keys by the time they were last used',
        kind: 'bars',
        unit: 'count',
        buckets: buckets.starts.map((start) => start.toISOString()),
        series: [{ name: 'Keys', tone: 'info', values: await lastUsesByBucket(db, buckets) }],
        empty: 'No key was used in this time.',
      },
    ],
    tables: [],
  };
}
