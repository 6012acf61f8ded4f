import type { AdminContext } from '../../app/admin/declaration.ts';
import { httpStatus } from '../../app/admin/http-status.ts';
import type { PortalDeclaration } from '../../app/admin/portal-page.ts';
import type { AdminState } from '../../app/admin/shapes.ts';
import type { App } from '../../app/declare/module.ts';
import { ERRORS_ANYWHERE, errorsOfRoute } from '../../openapi/errors-of-route.ts';

const group = 'Requests';

type Item = Readonly<Record<string, unknown>>;

/** The sentence that the operation has for the code of its error. */
function explained({ error_code: code, method, route: path }: Item, context: AdminContext): string | null {
  if (typeof code !== 'string') return null;
  const { routes } = context.app as App;
  const route = routes.find((each) => each.method === method && each.path === path);
  const known = [...(route === undefined ? [] : errorsOfRoute(route)), ...ERRORS_ANYWHERE].find((each) => each.code === code);
  return known?.detail ?? null;
}

/** Null where there is no limit: it is only counted. */
const percentUsed = ({ used, quota }: Item): number | null =>
  quota === null ? null : Math.min(100, Math.round((Number(used) * 100) / Number(quota)));

/** The connection may end before there is a response. */
const statusOf = ({ status }: Item): AdminState => httpStatus(status) ?? { value: 'no response', tone: 'warning' };

/** The pages where customers see their requests, their usage and what is left of their quotas. */
export const requestsPortal: PortalDeclaration = {
  pages: [
    {
      resource: 'request',
      name: 'requests',
      label: 'Requests',
      singular: 'request',
      group,
      icon: 'request',
      description: 'Your recent requests, newest first, without their content.',
      live: true,
      madeBy: 'A request appears about a second after its response.',
      empty: { text: 'You have sent no requests yet. Create an API key and send the first one.', resource: 'api-keys', label: 'API keys' },
      step: { place: 2, title: 'Send your first request', text: 'With the key: it appears here about a second later.' },
      title: 'path',
      columns: [
        { name: 'finished_at', label: 'When' },
        { name: 'method', kind: 'code' },
        { name: 'route', label: 'Operation', kind: 'code' },
        { name: 'status', label: 'Status', kind: 'state' },
        { name: 'error_code', label: 'Error', kind: 'code' },
        { name: 'meaning', label: 'What it means', recordOnly: true },
        { name: 'duration_ms', label: 'Duration (ms)', secondary: true },
        { name: 'key_id', label: 'API key', of: 'api-keys', secondary: true },
        { name: 'request_id', label: 'Request id', kind: 'code', secondary: true },
      ],
      filters: [
        { name: 'failed', label: 'Failed' },
        { name: 'since', label: 'Since' },
        { name: 'until', label: 'Until' },
        { name: 'key_id', label: 'API key', of: 'api-keys' },
        { name: 'request_id', label: 'Request id' },
      ],
      cells: { status: statusOf, meaning: explained },
      charts: [
        {
          title: 'Requests',
          kind: 'bars',
          unit: 'count',
          time: 'finished_at',
          since: 'since',
          by: 'failed',
          series: [
            { name: 'Succeeded', tone: 'good', metric: 'requests', value: 'false' },
            { name: 'Failed', tone: 'bad', metric: 'requests', value: 'true' },
          ],
        },
        {
          title: 'Latency',
          kind: 'lines',
          unit: 'ms',
          time: 'finished_at',
          since: 'since',
          series: [{ name: 'Mean', tone: 'info', metric: 'duration', weight: 'requests' }],
        },
      ],
      tiles: [
        { label: 'Requests', parameters: {}, since: 'since' },
        { label: 'Failed requests', parameters: { failed: 'true' }, since: 'since', isBad: true },
      ],
    },
    {
      resource: 'request_usage',
      name: 'usage',
      label: 'Usage',
      singular: 'count',
      group,
      icon: 'usage',
      description: 'How often you called what, by day in UTC.',
      madeBy: 'Every request is counted.',
      empty: { text: 'Nothing was counted yet: a day appears with its first request.' },
      title: 'route',
      columns: [
        'day',
        { name: 'method', kind: 'code' },
        { name: 'route', label: 'Operation', kind: 'code' },
        { name: 'key_id', label: 'API key', of: 'api-keys', secondary: true },
        { name: 'version', secondary: true },
        { name: 'deprecated', secondary: true },
        'requests',
        'failures',
      ],
      filters: [
        { name: 'since', label: 'From' },
        { name: 'until', label: 'To' },
        { name: 'key_id', label: 'API key', of: 'api-keys' },
        { name: 'route', label: 'Operation' },
        { name: 'deprecated', label: 'Deprecated' },
      ],
    },
    {
      resource: 'request_quota',
      name: 'quotas',
      label: 'Quotas',
      singular: 'period',
      group,
      icon: 'clock',
      description: 'What you and your keys used of your quotas, by calendar period in UTC.',
      madeBy: 'A period appears with its first request.',
      empty: { text: 'You have no quotas, or used none of them yet.' },
      title: 'period',
      columns: [
        { name: 'kind', label: 'Whose' },
        { name: 'key_id', label: 'API key', of: 'api-keys' },
        'period',
        { name: 'starts_at', label: 'From', secondary: true },
        { name: 'ends_at', label: 'Renews' },
        { name: 'spent', label: 'Used up', kind: 'progress' },
        'used',
        'quota',
      ],
      cells: { spent: percentUsed },
      filters: [
        { name: 'kind', label: 'Whose' },
        { name: 'key_id', label: 'API key', of: 'api-keys' },
      ],
    },
  ],
};
