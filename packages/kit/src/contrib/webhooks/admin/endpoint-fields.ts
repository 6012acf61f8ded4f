// The fields of an endpoint's form: what the model does not say about them.
import { modelField } from '../../../app/admin/model-list.ts';
import type { AdminField } from '../../../app/admin/shapes.ts';
import { HEADER_NAME_LENGTH_MAX, HEADER_VALUE_LENGTH_MAX } from '../endpoints/custom-headers.ts';
import { EVENT_TYPE_LENGTH_MAX } from '../publishing/subscription.ts';
import { webhookEndpoints } from '../models.ts';
import type { ShownEndpoint } from './store.ts';
import { HIDDEN_VALUE } from './endpoint-form.ts';

const field = (name: string, given: Partial<AdminField> = {}): AdminField => modelField(webhookEndpoints, name, given);

/** The types, and the patterns they have in common. */
export function eventPatterns(types: readonly string[]): readonly string[] {
  const patterns = new Set(types.flatMap((type) => (type.includes('.') ? [`${type.slice(0, type.indexOf('.'))}.*`] : [])));
  return types.length === 0 ? [] : [...types, ...patterns, '*'];
}

/** `types`: those that the application declares, and those that were published. */
export function editedFields(types: readonly string[]): readonly AdminField[] {
  return [
    // Its query may hold a token of the receiver.
    field('url', { kind: 'text', required: true, sensitive: true, placeholder: 'https://example.com/hooks' }),
    field('events', {
      maxLength: EVENT_TYPE_LENGTH_MAX,
      help: 'Types (`order.paid`), patterns (`order.*`), or `*`.',
      suggestions: eventPatterns([...new Set(types)]),
    }),
    field('description'),
    {
      name: 'schedule',
      label: 'Retry delays',
      kind: 'strings',
      maxLength: 20,
      help: 'Seconds between attempts, in order; empty for the schedule of the application.',
    },
    {
      name: 'headers',
      label: 'Custom headers',
      kind: 'strings',
      maxLength: HEADER_NAME_LENGTH_MAX + HEADER_VALUE_LENGTH_MAX + 2,
      placeholder: 'X-Api-Key: …',
      sensitive: true,
      help: `One per line, "Name: value". Stored values are not shown: "${HIDDEN_VALUE}" keeps one, a removed line removes it.`,
    },
    field('rate_limit', { placeholder: '10/s', help: 'Requests at most; empty for no limit.' }),
    field('send_traceparent', {
      label: 'Send the trace',
      help: 'Sends traceparent, so that the receiver can continue the trace of the request that published the event.',
    }),
  ];
}

/** Owner, tenant and signature are chosen once. */
export function creationFields(types: readonly string[]): readonly AdminField[] {
  const edited = editedFields(types);
  return [
    field('owner_id', { name: 'owner', kind: 'reference', of: 'user', required: true }),
    field('tenant_key', { label: 'Tenant', kind: 'text', help: 'As the application publishes it; empty for a personal endpoint.' }),
    ...edited.slice(0, DESCRIPTION),
    field('signature', {
      choices: [
        { value: 'v1', label: 'v1: HMAC with a shared secret' },
        { value: 'v1a', label: 'v1a: ed25519, verified with a public key' },
      ],
      help: 'Default: v1. Rotation keeps the signature type.',
    }),
    ...edited.slice(DESCRIPTION),
  ];
}

/** The URL, the events and the description come first. */
const DESCRIPTION = 3;

export function formValues(endpoint: ShownEndpoint) {
  const { url, events, description, schedule, header_names: names, rate_limit, send_traceparent } = endpoint;
  return {
    url,
    events,
    description,
    schedule: (schedule ?? []).map(String),
    headers: (names ?? []).map((name) => `${name}: ${HIDDEN_VALUE}`),
    rate_limit: rate_limit ?? '',
    send_traceparent,
  };
}
