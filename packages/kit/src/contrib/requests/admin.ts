import type { AdminContext, AdminDeclaration } from '../../app/admin/declaration.ts';
import { screen } from '../../screens/screen.ts';
import { quotaResource, requestResource, usageResource } from './resource.ts';

interface Called {
  readonly owner_id: string;
  readonly key_id: string | null;
}

/** What the user and the key of a row are called. */
interface Names {
  readonly user?: string | undefined;
  readonly key?: string | undefined;
}

/** Of a page of rows, in two reads. */
async function namesOf(rows: readonly Called[], { titlesOf }: AdminContext): Promise<readonly Names[]> {
  const given = (ids: readonly (string | null)[]) => ids.flatMap((id) => (id === null || id === '' ? [] : [id]));
  const users = await titlesOf('user', given(rows.map(({ owner_id: id }) => id)));
  const keys = await titlesOf('api_key', given(rows.map(({ key_id: id }) => id)));
  return rows.map(({ owner_id: user, key_id: key }) => ({ user: users.get(user), key: keys.get(key ?? '') }));
}

/** To the page of the user and of the key, where the site has one. */
const links = {
  owner_id: ({ owner_id: id, user = id }: Called & Names, { linkTo }: AdminContext) =>
    id === '' ? null : (linkTo('user', id, user) ?? user),
  key_id: ({ key_id: id, key = id ?? '' }: Called & Names, { linkTo }: AdminContext) =>
    id === null || id === '' ? null : (linkTo('api_key', id, key) ?? key),
};

const requestScreen = screen(requestResource, {
  name: 'requests',
  label: 'Requests',
  singular: 'request',
  group: 'API',
  icon: 'request',
  description: 'Finished requests to the operations of the API, newest first. A row is written about a second after the response.',
  title: 'path',
  columns: [
    { name: 'finished_at', label: 'When' },
    { name: 'method', kind: 'code' },
    { name: 'route', label: 'Operation', kind: 'code' },
    'status',
    { name: 'error_code', label: 'Error', kind: 'code' },
    { name: 'duration_ms', label: 'Duration (ms)' },
    { name: 'owner_id', label: 'User', kind: 'link' },
    { name: 'tenant_key', label: 'Tenant', secondary: true },
    { name: 'key_id', label: 'API key', kind: 'link', secondary: true },
  ],
  filters: [
    { column: 'failed', label: 'Failed' },
    { column: 'owner_id', name: 'owner', label: 'User', isIndexed: true },
    { column: 'key_id', name: 'key', label: 'API key', isIndexed: true },
    { column: 'tenant_key', name: 'tenant', label: 'Tenant', isIndexed: true },
    { column: 'request_id', label: 'Request id', isIndexed: true },
  ],
  related: [{ to: 'tenant', filter: 'tenant', column: 'tenant_key' }],
  load: namesOf,
  cells: links,
  search: [],
  readOnly: true,
  creation: { refused: 'Rows are written by the requests themselves.' },
});

const usageScreen = screen(usageResource, {
  name: 'request-usage',
  label: 'Who calls what',
  singular: 'count',
  plural: 'counts',
  group: 'API',
  icon: 'usage',
  description: 'Requests by day, operation, version and caller. Filter by a version or by deprecated operations before you remove them.',
  title: 'route',
  columns: [
    'day',
    { name: 'method', kind: 'code' },
    { name: 'route', label: 'Operation', kind: 'code' },
    'version',
    'deprecated',
    { name: 'owner_id', label: 'User', kind: 'link' },
    { name: 'tenant_key', label: 'Tenant', secondary: true },
    { name: 'key_id', label: 'API key', kind: 'link', secondary: true },
    'requests',
    'failures',
  ],
  filters: [
    { column: 'deprecated', label: 'Deprecated' },
    { column: 'version', label: 'Version' },
    { column: 'route', label: 'Operation' },
    { column: 'owner_id', name: 'owner', label: 'User', isIndexed: true },
    { column: 'key_id', name: 'key', label: 'API key', isIndexed: true },
    { column: 'tenant_key', name: 'tenant', label: 'Tenant', isIndexed: true },
  ],
  related: [{ to: 'tenant', filter: 'tenant', column: 'tenant_key' }],
  load: namesOf,
  cells: links,
  search: [],
  readOnly: true,
  creation: { refused: 'Requests are counted by the API itself.' },
});

interface Whose extends Names {
  readonly tenant_key: string;
  readonly period: string;
}

const quotaScreen = screen(quotaResource, {
  name: 'quotas',
  label: 'Quotas',
  singular: 'period',
  group: 'API',
  icon: 'usage',
  description: 'Quota use of API keys, users and tenants by calendar period (UTC). Every request is counted immediately.',
  title: 'whose',
  columns: [
    'kind',
    { name: 'key_id', label: 'API key', kind: 'link' },
    { name: 'owner_id', label: 'User', kind: 'link' },
    { name: 'tenant_key', label: 'Tenant' },
    'period',
    { name: 'starts_at', label: 'From' },
    { name: 'ends_at', label: 'Renews', secondary: true },
    'used',
    'quota',
  ],
  filters: [
    { column: 'kind', label: 'Whose' },
    { column: 'owner_id', name: 'owner', label: 'User', isIndexed: true },
    { column: 'key_id', name: 'key', label: 'API key', isIndexed: true },
    { column: 'tenant_key', name: 'tenant', label: 'Tenant', isIndexed: true },
  ],
  related: [{ to: 'tenant', filter: 'tenant', column: 'tenant_key' }],
  load: namesOf,
  cells: { ...links, whose: ({ key, user, tenant_key: tenant, period }: Whose) => `${key ?? user ?? (tenant || 'Quota')}, ${period}` },
  search: [],
  readOnly: true,
  creation: { refused: 'Requests are counted by the API itself.' },
});

/** What the admin site shows of requests. Read-only. */
export const requestsAdmin: AdminDeclaration = { resources: [requestScreen, usageScreen, quotaScreen] };
