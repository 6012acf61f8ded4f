// What the form of an endpoint says, in the words of the verbs.
import type { Db } from '../../../db/engine/db.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import type { FaultCollector } from '../../../errors/fault-collector.ts';
import type { KitError } from '../../../errors/kit-error.ts';
import { openHeaders, type HeaderEdit } from '../endpoints/custom-headers.ts';
import { endpointColumns, type EndpointFields } from '../endpoints/endpoint-fields.ts';
import { URL_NOT_ALLOWED } from '../network/url-policy.ts';
import type { WebhookEndpoint } from '../endpoints/store.ts';
import { webhooksOf, type Webhooks } from '../webhooks.ts';

export interface EndpointForm {
  readonly url?: string;
  readonly events?: readonly string[];
  readonly description?: string;
  readonly schedule?: readonly string[];
  readonly headers?: readonly string[];
  readonly rate_limit?: string | null;
  readonly send_traceparent?: boolean | null;
}

/** Stands for the value of a stored header in the lines of the form. */
export const HIDDEN_VALUE = '•••';

/** The fields that are given. All faults are added to `faults`. `before`: the endpoint that is changed; null for a new one. */
export function readEndpointForm(db: Db, form: EndpointForm, before: WebhookEndpoint | null, faults: FaultCollector): EndpointFields {
  const webhooks = webhooksOf(db);
  const { events, description, schedule, headers, rate_limit: rateLimit, send_traceparent: sendTraceparent } = form;
  const url = form.url === undefined ? undefined : faults.check(() => checkedUrl(webhooks, form.url as string));
  const edit = headers === undefined ? undefined : faults.check(() => headerEdit(before, headers));
  const fields: EndpointFields = {
    ...(url === undefined ? {} : { url }),
    ...(events === undefined ? {} : { events }),
    ...(description === undefined ? {} : { description }),
    ...(schedule === undefined ? {} : { schedule: scheduleOf(schedule) }),
    ...(edit === undefined ? {} : { headers: edit }),
    ...(rateLimit === undefined ? {} : { rateLimit: rateLimit === '' ? null : rateLimit }),
    ...(sendTraceparent === undefined ? {} : { sendTraceparent: sendTraceparent ?? false }),
  };
  const current = edit === undefined || before === null ? {} : openHeaders(webhooks.secrets, before.headers);
  endpointColumns(webhooks, fields, faults, current);
  return fields;
}

export function formFault(field: string, code: string, message: string): KitError {
  return coreErrors.validation_error({ errors: [{ location: ['body', field], code, message }] });
}

/** Tenants get one sentence for every refusal; operators are told which rule it was, at the field. */
function checkedUrl({ settings }: Webhooks, url: string): string {
  const checked = settings.urlPolicy.checkUrl(url);
  if (!checked.ok) throw formFault('url', 'url_not_allowed', `${URL_NOT_ALLOWED} The policy says: ${checked.detail}.`);
  return url;
}

function scheduleOf(lines: readonly string[]): number[] | null {
  return lines.length === 0 ? null : lines.map((line) => (line.trim() === '' ? Number.NaN : Number(line)));
}

function headersOf(lines: readonly string[]): Record<string, string> {
  const headers = lines.map((line) => {
    const colon = line.indexOf(':');
    if (colon <= 0) throw formFault('headers', 'invalid_header', 'Each line is a name, a colon and a value.');
    return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()] as const;
  });
  const names = headers.map(([name]) => name.toLowerCase());
  if (new Set(names).size < names.length) throw formFault('headers', 'invalid_header', 'A header is given twice.');
  return Object.fromEntries(headers);
}

/** What the lines of the form change: lines that are gone remove their header, hidden values stay as they are. */
function headerEdit(before: WebhookEndpoint | null, lines: readonly string[]): HeaderEdit {
  const given = headersOf(lines);
  const names = before?.header_names ?? [];
  const kept = new Set(Object.keys(given).map((name) => name.toLowerCase()));
  const removed = names.filter((name) => !kept.has(name)).map((name) => [name, null] as const);
  const stored = new Set(names);
  const changed = Object.entries(given).filter(([name, value]) => value !== HIDDEN_VALUE || !stored.has(name.toLowerCase()));
  return Object.fromEntries([...removed, ...changed]);
}
