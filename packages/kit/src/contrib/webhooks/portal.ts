import type { PortalDeclaration } from '../../app/admin/portal-page.ts';
import { webhooksOf } from './webhooks.ts';

/** The pages where customers manage their endpoints and see what was sent to them. */
export const webhooksPortal: PortalDeclaration = {
  pages: [
    {
      resource: 'webhook_endpoint',
      name: 'endpoints',
      label: 'Endpoints',
      singular: 'endpoint',
      group: 'Webhooks',
      icon: 'endpoint',
      description: 'Addresses of yours that receive events. The signing secret is shown once, when an endpoint is created.',
      removal: 'The endpoint is deleted with its deliveries.',
      title: 'url',
      columns: [
        { name: 'url', kind: 'code' },
        { name: 'is_active', label: 'Enabled' },
        { name: 'events', secondary: true },
        { name: 'failing_since', label: 'Failing since' },
        { name: 'consecutive_failures', label: 'Failures in a row', secondary: true },
        { name: 'disabled_reason', label: 'Disabled because', secondary: true },
        { name: 'description', secondary: true },
      ],
      states: {
        is_active: {
          true: { value: 'enabled', tone: 'good' },
          false: { value: 'disabled', tone: 'bad', hint: 'Nothing is sent. Edit the endpoint to enable it.' },
        },
      },
      actions: {
        ping: { label: 'Send a ping', done: 'A ping is on its way: see its deliveries.' },
        'rotate-secret': {
          label: 'Rotate secret',
          confirm: 'The endpoint gets a new signing secret, which is shown once. For a while requests carry signatures of both.',
          done: 'The endpoint has a new signing secret.',
        },
        recover: {
          label: 'Recover missed events',
          confirm: 'Everything that this endpoint has missed since the time is sent again.',
          done: 'Missed events are sent again.',
        },
      },
      secret: { label: 'Signing secret', note: 'Copy it now: it is not shown again. Your receiver verifies signatures with it.' },
      suggestions: ({ db, controller }) => ({
        events: [
          ...((controller.constructor as { readonly availableEvents?: readonly string[] | null }).availableEvents ??
            webhooksOf(db).settings.eventTypes.map(({ name }) => name)),
          '*',
        ],
      }),
      tiles: [{ label: 'Endpoints', parameters: {} }],
    },
    {
      resource: 'webhook_endpoint',
      below: { path: 'deliveries', page: 'endpoints', label: 'Endpoint' },
      name: 'deliveries',
      label: 'Deliveries',
      singular: 'delivery',
      group: 'Webhooks',
      icon: 'delivery',
      description: 'What was sent to your endpoints, newest first. Choose an endpoint to see all of its deliveries.',
      madeBy: 'A delivery appears when an event is published that an endpoint subscribes to.',
      title: 'event_type',
      columns: [
        { name: 'event_type', label: 'Event', kind: 'code' },
        'status',
        'attempts',
        { name: 'last_status_code', label: 'Response', secondary: true },
        { name: 'failure_reason', label: 'Failed because', secondary: true },
        { name: 'created_at', label: 'Created' },
        { name: 'next_attempt_at', label: 'Next attempt', secondary: true },
      ],
      filters: [
        { name: 'status', label: 'Status' },
        { name: 'event_type', label: 'Event type' },
      ],
      states: {
        status: {
          pending: { value: 'pending', tone: 'info' },
          succeeded: { value: 'succeeded', tone: 'good' },
          failed: { value: 'failed', tone: 'bad', hint: 'All attempts failed. Send it again once your receiver works.' },
        },
      },
      actions: { retry: { label: 'Send again', done: 'The delivery is sent again.' } },
    },
  ],
};
