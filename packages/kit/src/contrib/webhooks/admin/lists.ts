// Columns of the admin site's lists: what the models do not say about them.
import { modelList, modelView } from '../../../app/admin/model-list.ts';
import { webhookAttempts, webhookDeliveries, webhookEndpoints, webhookEvents } from '../models.ts';

export const endpointList = modelList(webhookEndpoints, 'p', {
  columns: [
    { name: 'url', kind: 'url' },
    { name: 'owner', kind: 'link' },
    { name: 'tenant_key', label: 'Tenant', secondary: true },
    { name: 'events', secondary: true },
    { name: 'state', kind: 'state' },
    { name: 'success_rate', label: 'Delivered', kind: 'state' },
    { name: 'last_delivered_at', label: 'Last delivery', kind: 'time', secondary: true },
    { name: 'description', secondary: true },
    { name: 'created_at', label: 'Created', sortable: true, secondary: true },
  ],
});

export const deliveryList = modelList(webhookDeliveries, 'd', {
  columns: [
    { name: 'event', kind: 'link' },
    { name: 'endpoint', kind: 'link' },
    'status',
    { name: 'attempts', secondary: true },
    { name: 'last_status_code', label: 'Status code', secondary: true },
    { name: 'next_attempt_at', label: 'Next attempt', secondary: true },
    { name: 'created_at', label: 'Published', sortable: true },
  ],
  // A state that is shown is made of several columns, and the attempts of a delivery are counted in all.
  orders: { event: 'event_type', endpoint: { sql: 'p.url', kind: 'text' }, status: null, attempts: null },
});

export const eventList = modelList(webhookEvents, 'e', {
  columns: [
    'type',
    'audience',
    { name: 'owner', kind: 'link' },
    { name: 'tenant_key', label: 'Tenant', secondary: true },
    { name: 'delivered', kind: 'state' },
    { name: 'timestamp', label: 'Published', sortable: true },
    { name: 'id', sortable: true, secondary: true },
  ],
});

export const attemptView = modelView(webhookAttempts, [
  { name: 'started_at', label: 'Started' },
  { name: 'outcome', kind: 'state' },
  'status_code',
  { name: 'duration', label: 'Took', kind: 'duration' },
  { name: 'error', secondary: true },
  { name: 'worker', kind: 'code', secondary: true },
]);
