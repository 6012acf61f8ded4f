import type { PortalDeclaration } from '../../app/admin/portal-page.ts';

const group = 'Requests';

/** The pages where customers see their requests, their usage and what is left of their quotas. */
export const requestsPortal: PortalDeclaration = {
  pages: [
    {
      resource: 'request',
      name: 'requests',
      label: 'Requests',
      singular: 'request',
      group,
      icon: 'event',
      description: 'Your recent requests, newest first, without their content.',
      madeBy: 'A request appears about a second after its response.',
      title: 'path',
      columns: [
        { name: 'finished_at', label: 'When' },
        { name: 'method', kind: 'code' },
        { name: 'route', label: 'Operation', kind: 'code' },
        { name: 'status', label: 'Status' },
        { name: 'error_code', label: 'Error', kind: 'code' },
        { name: 'duration_ms', label: 'Duration (ms)', secondary: true },
        { name: 'key_id', label: 'API key', kind: 'code', secondary: true },
        { name: 'request_id', label: 'Request id', kind: 'code', secondary: true },
      ],
      filters: [
        { name: 'failed', label: 'Failed' },
        { name: 'since', label: 'Since' },
        { name: 'until', label: 'Until' },
        { name: 'key_id', label: 'API key (id)' },
        { name: 'request_id', label: 'Request id' },
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
      icon: 'table',
      description: 'How often you called what, by day in UTC.',
      madeBy: 'Every request is counted.',
      title: 'route',
      columns: [
        'day',
        { name: 'method', kind: 'code' },
        { name: 'route', label: 'Operation', kind: 'code' },
        { name: 'key_id', label: 'API key', kind: 'code', secondary: true },
        { name: 'version', secondary: true },
        { name: 'deprecated', secondary: true },
        'requests',
        'failures',
      ],
      filters: [
        { name: 'since', label: 'From' },
        { name: 'until', label: 'To' },
        { name: 'key_id', label: 'API key (id)' },
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
      icon: 'table',
      description: 'What you and your keys used of your quotas, by calendar period in UTC.',
      madeBy: 'A period appears with its first request.',
      title: 'period',
      columns: [
        { name: 'kind', label: 'Whose' },
        { name: 'key_id', label: 'API key', kind: 'code' },
        'period',
        { name: 'starts_at', label: 'From', secondary: true },
        { name: 'ends_at', label: 'Renews' },
        'used',
        'quota',
      ],
      filters: [
        { name: 'kind', label: 'Whose' },
        { name: 'key_id', label: 'API key (id)' },
      ],
    },
  ],
};
