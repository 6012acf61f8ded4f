// The forms of an endpoint: their fields, and the input of the resource that they make.
import { modelField } from '../../../app/admin/model-view.ts';
import type { AdminField } from '../../../app/admin/shapes.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import type { KitError } from '../../../errors/kit-error.ts';
import type { ScreenForms, ScreenRow } from '../../../screens/screen-words.ts';
import { HEADER_NAME_LENGTH_MAX, HEADER_VALUE_LENGTH_MAX, type HeaderEdit } from '../endpoints/custom-headers.ts';
import type { WebhookEndpoint } from '../endpoints/store.ts';
import { webhookEndpoints } from '../models.ts';
import { EVENT_TYPE_LENGTH_MAX } from '../publishing/subscription.ts';

/** Stands for the value of a stored header in the lines of the form. */
const HIDDEN_VALUE = '•••';

/** `types`: those that the application declares. */
export function endpointForms(types: readonly string[]): ScreenForms<WebhookEndpoint> {
  return { create: creationFields(types), edit: editedFields(types), values: formValues, input: inputOf };
}

const field = (name: string, given: Partial<AdminField> = {}): AdminField => modelField(webhookEndpoints, name, given);

/** The types, and the patterns they have in common. */
export function eventPatterns(types: readonly string[]): readonly string[] {
  const patterns = new Set(types.flatMap((type) => (type.includes('.') ? [`${type.slice(0, type.indexOf('.'))}.*`] : [])));
  return types.length === 0 ? [] : [...types, ...patterns, '*'];
}

/** `types`: those that the application declares, and those that were published. */
function editedFields(types: readonly string[]): readonly AdminField[] {
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
      help: 'Seconds between attempts, in order; leave empty for the default schedule.',
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
    field('rate_limit', { placeholder: '10/s', help: 'Maximum request rate; leave empty for no limit.' }),
    field('send_traceparent', {
      label: 'Send the trace context',
      help: 'Sends the `traceparent` header, so that the receiver can continue the trace of the request that published the event.',
    }),
  ];
}

/** Owner, tenant and signature are chosen once. */
function creationFields(types: readonly string[]): readonly AdminField[] {
  const edited = editedFields(types);
  return [
    field('owner_id', { name: 'owner', kind: 'reference', of: 'user', required: true }),
    field('tenant_key', { label: 'Tenant', kind: 'text', help: 'As the application publishes it; leave empty for a personal endpoint.' }),
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

function formValues({ url, events, description, schedule, header_names: names, rate_limit, send_traceparent }: WebhookEndpoint): ScreenRow {
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

interface EndpointForm {
  readonly owner?: string;
  readonly tenant_key?: string | null;
  readonly signature?: string | null;
  readonly url?: string;
  readonly events?: readonly string[];
  readonly description?: string;
  readonly schedule?: readonly string[];
  readonly headers?: readonly string[];
  readonly rate_limit?: string | null;
  readonly send_traceparent?: boolean | null;
}

/** Forms send an empty text, or null, for a field that is left empty. */
function inputOf(fields: ScreenRow, before: WebhookEndpoint | null): ScreenRow {
  const {
    owner,
    tenant_key: tenant,
    signature,
    schedule,
    headers,
    rate_limit: limit,
    send_traceparent: sends,
    ...rest
  } = fields as EndpointForm;
  return {
    ...rest,
    ...(owner === undefined ? {} : { owner_id: owner }),
    ...(tenant === undefined ? {} : { tenant_key: tenant ?? '' }),
    ...(signature === undefined || signature === null || signature === '' ? {} : { signature }),
    ...(schedule === undefined ? {} : { schedule: scheduleOf(schedule) }),
    ...(headers === undefined ? {} : { headers: headerEdit(before?.header_names ?? [], headers) }),
    ...(limit === undefined ? {} : { rate_limit: limit === '' ? null : limit }),
    ...(sends === undefined ? {} : { send_traceparent: sends ?? false }),
  };
}

function scheduleOf(lines: readonly string[]): number[] | null {
  return lines.length === 0 ? null : lines.map((line) => (line.trim() === '' ? Number.NaN : Number(line)));
}

function headersOf(lines: readonly string[]): Record<string, string> {
  const headers = lines.map((line) => {
    const colon = line.indexOf(':');
    if (colon <= 0) throw headerFault('Each line is a name, a colon and a value.');
    return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()] as const;
  });
  const names = headers.map(([name]) => name.toLowerCase());
  if (new Set(names).size < names.length) throw headerFault('A header is given twice.');
  return Object.fromEntries(headers);
}

function headerFault(message: string): KitError {
  return coreErrors.validation_error({ errors: [{ location: ['body', 'headers'], code: 'invalid_header', message }] });
}

/** Lines that are gone remove their header, and hidden values stay as they are. */
function headerEdit(stored: readonly string[], lines: readonly string[]): HeaderEdit {
  const given = headersOf(lines);
  const kept = new Set(Object.keys(given).map((name) => name.toLowerCase()));
  const removed = stored.filter((name) => !kept.has(name)).map((name) => [name, null] as const);
  const changed = Object.entries(given).filter(([name, value]) => value !== HIDDEN_VALUE || !stored.includes(name.toLowerCase()));
  return Object.fromEntries([...removed, ...changed]);
}
