import type { Db } from '../../../db/engine/db.ts';
import { FaultCollector } from '../../../errors/fault-collector.ts';
import { endpointColumns, invalidField, type EndpointFields } from './endpoint-fields.ts';
import { destinationNameOf } from '../publishing/audience.ts';
import { openHeaders } from './custom-headers.ts';
import { disableEndpoint, enableEndpoint } from './disable.ts';
import { changeEndpoint, findEndpoint, type EndpointChanges, type WebhookEndpoint } from './store.ts';
import { webhooksOf } from '../webhooks.ts';
import { refuseUnknownNames } from '../../../options/read-options.ts';

export interface EndpointEdit extends EndpointFields {
  /** False disables and fails what waits; true enables a disabled endpoint and clears its failures. */
  readonly isActive?: boolean | undefined;
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
  const { isActive, ...fields } = edit;
  const faults = new FaultCollector();
  if (destinationNameOf(endpoint) !== null) faults.check(() => checkDestinationEdit(fields));
  const current = fields.headers === undefined ? {} : openHeaders(webhooks.secrets, endpoint.headers);
  const columns = endpointColumns(webhooks, fields, faults, current);
  faults.throwIfAny();
  const changes: EndpointChanges = { ...columns, ...(fields.rateLimit === undefined ? {} : { rate_next_at: null }) };
  if (Object.keys(changes).length > 0) await changeEndpoint(tx, endpoint.id, changes, webhooks.clock.now());
  if (isActive === false) await disableEndpoint(tx, endpoint.id, 'manual');
  // Saying "active" of an active endpoint is no reason to forget that it is failing.
  if (isActive === true && !endpoint.is_active) await enableEndpoint(tx, endpoint.id);
  return (await findEndpoint(tx, endpoint.id)) ?? endpoint;
}

/** What the application declares would be written again at its next start. */
const OF_OPERATOR: ReadonlySet<string> = new Set(['description', 'availableEvents']);

function checkDestinationEdit(fields: EndpointFields): void {
  for (const [field, value] of Object.entries(fields))
    if (value !== undefined && !OF_OPERATOR.has(field))
      throw invalidField(field, 'This is a destination that the application declares: change it in webhooks({ destinations }).');
}
