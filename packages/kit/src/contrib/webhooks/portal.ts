import type { PortalDeclaration } from '../../app/admin/portal-page.ts';
import { httpStatus } from '../../app/admin/http-status.ts';
import type { AdminState } from '../../app/admin/shapes.ts';
import type { FailureReason } from './delivery/delivery-outcome.ts';
import { webhooksOf } from './webhooks.ts';

const bad = (value: string, hint: string): AdminState => ({ value, tone: 'bad', hint });

/** Why an attempt failed, in the words of the one who has the receiver. */
const failureStates: Readonly<Record<FailureReason, AdminState>> = {
  http_status: bad('error status', 'Your receiver answered with a status other than 2xx. Its response is below.'),
  timeout: bad('timeout', 'Your receiver did not answer in time. Answer first and do the work later.'),
  connection: bad('no connection', 'Your receiver could not be reached at its address.'),
  tls: bad('TLS', 'The certificate of your receiver was not accepted.'),
  blocked_address: bad('address not allowed', 'The name of your receiver leads to an address that is not public.'),
  audience_changed: bad('not for you any more', 'The event does not belong to the owner of the endpoint any more.'),
  endpoint_disabled: bad('endpoint disabled', 'Enable the endpoint, then send it again.'),
  secret_unavailable: bad('not signed', 'The signing secret could not be read. Rotate it, then send it again.'),
  payload: bad('payload', 'The stored event could not be read.'),
};

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
      empty: { text: 'You have no endpoints. Add the address of your receiver, and choose the events that it gets.' },
      step: { place: 3, title: 'Add an endpoint', text: 'The address of your receiver, and the events that it gets.' },
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
        disabled_reason: {
          manual: { value: 'disabled by hand', tone: 'neutral' },
          gone: bad('410 Gone', 'Your receiver answered that the address is gone. Edit the endpoint to enable it.'),
          continuous_failure: bad('failed for too long', 'Repair the receiver, then edit the endpoint to enable it.'),
        },
      },
      actions: {
        ping: { label: 'Send a ping', done: 'It is on its way: the response appears here.', shows: 'deliveries' },
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
      suggestions: ({ db, controller }) => {
        const { availableEvents = null } = controller.constructor as { readonly availableEvents?: readonly string[] | null };
        const { eventTypes } = webhooksOf(db).settings;
        const deprecated = new Set(eventTypes.filter((type) => type.deprecated !== null).map(({ name }) => name));
        const offered = (availableEvents ?? eventTypes.map(({ name }) => name)).filter((name) => !deprecated.has(name));
        return { events: [...offered, '*'] };
      },
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
      live: true,
      madeBy: 'A delivery appears when an event is published that an endpoint subscribes to.',
      empty: {
        text: 'Nothing was sent to your endpoints yet. Open an endpoint and send a ping.',
        resource: 'endpoints',
        label: 'Endpoints',
      },
      step: {
        place: 4,
        title: 'Receive a delivery',
        text: 'Open your endpoint and send a ping: your receiver answers with a status of 2xx.',
        parameters: { status: 'succeeded' },
      },
      title: 'event_type',
      columns: [
        { name: 'event_type', label: 'Event', kind: 'code' },
        { name: 'event_id', label: 'Event id', kind: 'code', recordOnly: true },
        'status',
        'attempts',
        { name: 'last_status_code', label: 'Response', kind: 'state', secondary: true },
        { name: 'failure_reason', label: 'Failed because', secondary: true },
        { name: 'created_at', label: 'Created' },
        { name: 'next_attempt_at', label: 'Next attempt', secondary: true },
      ],
      filters: [
        { name: 'status', label: 'Status' },
        { name: 'event_type', label: 'Event type', of: 'event-types', isOpen: true },
        { name: 'event_id', label: 'Event', of: 'events', isMoment: true },
        { name: 'since', label: 'Since' },
      ],
      states: {
        status: {
          pending: { value: 'pending', tone: 'info' },
          succeeded: { value: 'succeeded', tone: 'good' },
          failed: { value: 'failed', tone: 'bad', hint: 'All attempts failed. Send it again once your receiver works.' },
        },
        failure_reason: failureStates,
      },
      cells: { last_status_code: ({ last_status_code: status }) => httpStatus(status) },
      charts: [
        {
          title: 'Deliveries',
          kind: 'bars',
          unit: 'count',
          time: 'created_at',
          since: 'since',
          by: 'status',
          series: [
            { name: 'Succeeded', tone: 'good', metric: 'deliveries', value: 'succeeded' },
            { name: 'Pending', tone: 'info', metric: 'deliveries', value: 'pending' },
            { name: 'Failed', tone: 'bad', metric: 'deliveries', value: 'failed' },
          ],
        },
      ],
      tiles: [{ label: 'Failed deliveries', parameters: { status: 'failed' }, since: 'since', isBad: true }],
      actions: { retry: { label: 'Send again', done: 'The delivery is sent again.' } },
    },
    {
      resource: 'webhook_endpoint',
      collection: 'events',
      name: 'events',
      label: 'Events',
      singular: 'event',
      group: 'Webhooks',
      icon: 'event',
      description: 'What happened and would be sent to you, newest first, whether an endpoint of yours subscribed to it or not.',
      madeBy: 'An event appears when this API publishes it.',
      empty: { text: 'Nothing that concerns you was published yet.', resource: 'event-types', label: 'Event types' },
      title: 'type',
      columns: [
        { name: 'type', label: 'Event', kind: 'code' },
        { name: 'sent', label: 'Sent to you' },
        { name: 'timestamp', label: 'Published' },
        { name: 'id', label: 'Event id', kind: 'code', secondary: true },
      ],
      filters: [
        { name: 'type', label: 'Event type', of: 'event-types', isOpen: true },
        { name: 'since', label: 'Since' },
      ],
      states: {
        sent: {
          none: { value: 'to no endpoint', tone: 'neutral', hint: 'No endpoint of yours subscribed to it when it was published.' },
          pending: { value: 'pending', tone: 'info' },
          failed: bad('failed', 'A delivery of it failed: open it, and send it again.'),
          succeeded: { value: 'succeeded', tone: 'good' },
        },
      },
    },
    {
      resource: 'webhook_endpoint',
      collection: 'event-types',
      key: 'name',
      name: 'event-types',
      label: 'Event types',
      singular: 'event type',
      group: 'Webhooks',
      icon: 'table',
      description:
        'What this API sends to endpoints: when, and with which data. Open one to subscribe an endpoint, or to send its example.',
      madeBy: '',
      empty: { text: 'This API declares no types of events.' },
      title: 'name',
      columns: [
        { name: 'name', label: 'Event', kind: 'code' },
        'description',
        { name: 'state', label: 'Status', kind: 'state' },
        { name: 'deprecated', label: 'What to use instead', recordOnly: true },
        { name: 'version', secondary: true },
        { name: 'versions', label: 'All versions', recordOnly: true },
      ],
      cells: {
        state: ({ deprecated }): AdminState | null =>
          typeof deprecated === 'string' ? { value: 'deprecated', tone: 'warning', hint: deprecated } : null,
      },
      borrows: {
        subscribe: {
          label: 'Subscribe an endpoint',
          confirm: 'The endpoint gets every event of this type from now on.',
          done: 'The endpoint is subscribed.',
          page: 'endpoints',
          fieldLabel: 'Endpoint',
          operation: 'edit',
          body: ({ name }, { events }) => ({ events: [...new Set([...(events as readonly string[]), name])] }),
        },
        'send-example': {
          label: 'Send an example',
          confirm: 'The example is sent to the endpoint, signed like a real event.',
          done: 'It is on its way: the response appears here.',
          page: 'endpoints',
          fieldLabel: 'Endpoint',
          operation: 'ping',
          shows: 'deliveries',
          body: ({ name }) => ({ event_type: name }),
        },
      },
    },
  ],
  texts: [
    {
      name: 'signature-check',
      label: 'Signature check',
      group: 'Webhooks',
      icon: 'shield',
      description:
        'Your receiver rejects a request? Paste it to see which header, secret or byte is wrong. Nothing that you paste leaves this page.',
      beside: 'endpoints',
      read: () => Promise.resolve([{ kind: 'signature_check', title: 'Received request' }]),
    },
  ],
};
