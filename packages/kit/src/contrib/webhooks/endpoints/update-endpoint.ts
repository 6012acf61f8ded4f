import type { Db } from '../../../db/db.ts';
import {
  checkDescription,
  checkedEvents,
  checkedHeaders,
  checkedRateLimit,
  checkedSchedule,
  checkedSendTraceparent,
  checkedUrl,
} from './create-endpoint.ts';
import { openHeaders, type HeaderEdit } from './custom-headers.ts';
import { disableEndpoint, enableEndpoint } from './disable.ts';
import { changeEndpoint, findEndpoint, type EndpointChanges, type WebhookEndpoint } from '../store.ts';
import { webhooksOf } from '../webhooks.ts';
import { refuseUnknownNames } from '../../../options/read-options.ts';

export interface EndpointEdit {
  readonly url?: string | undefined;
  readonly events?: readonly string[] | undefined;
  readonly description?: string | undefined;
  /** Delays in seconds; null for the module's schedule. */
  readonly schedule?: readonly number[] | null | undefined;
  /** A text sets a header, null removes it; headers that are not named stay. */
  readonly headers?: HeaderEdit | undefined;
  /** Such as `10/s`; null for no limit. */
  readonly rateLimit?: string | null | undefined;
  readonly sendTraceparent?: boolean | undefined;
  /** False disables and fails what waits; true enables a disabled endpoint and clears its failures. */
  readonly isActive?: boolean | undefined;
  /** What may be subscribed to; everything unless given. */
  readonly availableEvents?: readonly string[] | undefined;
}

const OPTIONS: ReadonlySet<string> = new Set(
  Object.keys({
    url: true,
    events: true,
    description: true,
    schedule: true,
    headers: true,
    rateLimit: true,
    sendTraceparent: true,
    isActive: true,
    availableEvents: true,
  } satisfies Record<keyof EndpointEdit, true>),
);

/** Changes what the edit names and nothing else. `endpoint` is the row as the transaction holds it. */
export async function updateEndpoint(tx: Db, endpoint: WebhookEndpoint, edit: EndpointEdit): Promise<WebhookEndpoint> {
  refuseUnknownNames('updateEndpoint()', edit, OPTIONS);
  const webhooks = webhooksOf(tx);
  const { url, events, description, schedule, headers, rateLimit, sendTraceparent, isActive } = edit;
  if (description !== undefined) checkDescription(description);
  const changes: EndpointChanges = {
    ...(url === undefined ? {} : { url: checkedUrl(webhooks, url) }),
    ...(events === undefined ? {} : { events: [...checkedEvents(events, edit.availableEvents)] }),
    ...(description === undefined ? {} : { description }),
    ...(schedule === undefined ? {} : { schedule: checkedSchedule(schedule) }),
    ...(headers === undefined ? {} : checkedHeaders(webhooks, openHeaders(webhooks.secrets, endpoint.headers), headers)),
    ...(rateLimit === undefined ? {} : { rate_limit: checkedRateLimit(rateLimit), rate_next_at: null }),
    ...(sendTraceparent === undefined ? {} : { send_traceparent: checkedSendTraceparent(sendTraceparent) }),
  };
  if (Object.keys(changes).length > 0) await changeEndpoint(tx, endpoint.id, changes, webhooks.clock.now());
  if (isActive === false) await disableEndpoint(tx, endpoint.id, 'manual');
  // Saying "active" of an active endpoint is no reason to forget that it is failing.
  if (isActive === true && !endpoint.is_active) await enableEndpoint(tx, endpoint.id);
  return (await findEndpoint(tx, endpoint.id)) ?? endpoint;
}
